import { sql } from 'kysely';
import { z } from 'zod';
import { declareList, idRange, type PageValues, pageOf, pageRows, pageValues } from '../api/http/list.ts';
import { type PageRequest, presentList } from '../api/http/list-envelope.ts';
import { declare, resource } from '../api/http/route.ts';
import { ApiError } from '../domain/api-error.ts';
import { idPattern, isId } from '../domain/ids.ts';
import type { Tenant } from '../domain/mode.ts';
import { lowestId, readIdTime } from '../platform/crypto/new-id.ts';
import { LOGGED_REQUEST_COLUMNS } from '../platform/db/columns.ts';
import type { Orm } from '../platform/db/orm.ts';
import type { ReadList } from '../platform/db/read-replica.ts';
import { columnList, tenantStatement } from '../platform/db/sql.ts';
import { LOGGED_REQUEST } from './examples.ts';
import {
  LoggedRequestResource,
  type LoggedRequestRow,
  presentLoggedRequest,
} from './logged-request-resource.ts';

/** How long requests are kept (docs/partners/requests.md). */
const KEPT_MS = 7 * 86_400_000;
/** How many requests a page looks through for those that its filters want. */
const MAX_LOOKED_THROUGH = 10_000;

const getRequest = declare({
  method: 'get',
  path: '/requests/:requestId',
  operationId: 'requests.get',
  summary: 'Retrieve a request',
  description:
    'What became of a request, by the `Request-Id` of its response. It is here within about a second of the response, for 7 days. ' +
    'Successful GET requests are not.',
  scope: 'requests:read',
  responses: { 200: LoggedRequestResource },
  examples: { 200: LOGGED_REQUEST },
  errors: ['request_not_found'],
});

const listRequests = declareList({
  path: '/requests',
  operationId: 'requests.list',
  summary: 'List requests',
  description:
    'The requests of the last 7 days, newest first, without successful GET requests. A page looks through 10,000 requests for those ' +
    'that its filters want, so one with filters can be short, or empty, while `has_more` is true.',
  scope: 'requests:read',
  idPrefix: 'req',
  item: LoggedRequestResource,
  example: LOGGED_REQUEST,
  filters: {
    status: z
      .string()
      .regex(/^[1-5](xx|[0-9]{2})$/, 'must be a status, such as 404, or a class of them, such as 4xx')
      .optional()
      .describe('Only requests with this status, or of this class: `404`, `4xx`.'),
    method: z
      .enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])
      .optional()
      .describe('Only requests with this method.'),
    path_prefix: z
      .string()
      .regex(/^\/[ -~]{0,199}$/, 'must begin with / and have at most 200 printable ASCII characters')
      .optional()
      .describe('Only requests whose `path` begins with this.'),
    api_key_id: z
      .string()
      .regex(new RegExp(idPattern('key')), 'must be the id of an API key')
      .optional()
      .describe('Only requests with this API key.'),
  },
});

export const loggedRequests = resource(
  { listRequests, getRequest },
  ({ orm, readList }: { orm: Orm; readList: ReadList }) => ({
    listRequests: async ({ caller, query }) => ({
      status: 200,
      body: await readList((from) => readRequestList(from, caller, query)),
    }),

    async getRequest({ caller, params: { requestId = '' } }) {
      const [row] =
        isId('req', requestId) && isKept(requestId) ? await one(orm.em.fork(), caller, { requestId }) : [];
      if (row === undefined) throw new ApiError('request_not_found');
      return { status: 200, body: present(row) };
    },
  }),
);

const keptFrom = () => new Date(Date.now() - KEPT_MS);
const isKept = (requestId: string) => requestId >= lowestId('req', keptFrom());
const present = (row: LoggedRequestRow) => presentLoggedRequest(row, readIdTime(row.id));

const one = tenantStatement((db, { partnerId, mode, requestId }: Tenant & { requestId: string }) =>
  db
    .selectFrom('logged_request')
    .select(LOGGED_REQUEST_COLUMNS)
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .where('id', '=', requestId),
);

interface RequestPage extends PageRequest {
  status?: string | undefined;
  method?: string | undefined;
  path_prefix?: string | undefined;
  api_key_id?: string | undefined;
}

/**
 * A page of the log, newest first. It looks through a bounded number of requests.
 * @throws ApiError `validation_failed` if `starting_after` is not a request of the tenant
 */
export async function readRequestList(orm: Orm, tenant: Tenant, page: RequestPage) {
  const { status, method, path_prefix: prefix, api_key_id: keyId } = page;
  const from = keptFrom();
  const values = {
    ...pageValues({
      ...page,
      created_gte: page.created_gte && page.created_gte > from ? page.created_gte : from,
    }),
    lowestStatus: Number(status?.replace('xx', '00') ?? 0),
    highestStatus: Number(status?.replace('xx', '99') ?? 999),
    method: method ?? '',
    prefix: prefix ?? '',
    keyId: keyId ?? '',
    lookedThrough: MAX_LOOKED_THROUGH,
  };
  const em = orm.em.fork();
  const rows = pageRows<LoggedRequestRow>(await selectPage(em, tenant, values), 'a request');
  const list = presentList(rows.map(present), page.limit);
  if (list.has_more) return list;
  const [last] = await lastLookedThrough(em, tenant, values);
  return last === undefined ? list : { ...list, has_more: true, next_cursor: last.id };
}

interface RequestPageValues extends PageValues {
  lowestStatus: number;
  highestStatus: number;
  method: string;
  prefix: string;
  keyId: string;
  lookedThrough: number;
}

const inRange = (values: Tenant & PageValues) => {
  const { partnerId, mode } = values;
  const { from, before } = idRange('req', values, 'real');
  return sql`r.partner_id = ${partnerId} AND r.mode = ${mode} AND r.id >= ${from} AND r.id < ${before}`;
};

const selectPage = tenantStatement((db, values: Tenant & RequestPageValues) =>
  pageOf(
    db,
    values,
    'logged_request',
    sql<LoggedRequestRow>`(SELECT * FROM (
      SELECT ${columnList('logged_request', LOGGED_REQUEST_COLUMNS, 'r')} FROM logged_request r
      WHERE ${inRange(values)} ORDER BY r.id DESC LIMIT ${values.lookedThrough}) looked
      WHERE status BETWEEN ${values.lowestStatus} AND ${values.highestStatus}
        AND (${values.method} = '' OR method = ${values.method}) AND (${values.keyId} = '' OR api_key_id = ${values.keyId})
        AND starts_with(path, ${values.prefix})
      ORDER BY id DESC LIMIT ${values.limit})`,
  ),
);

// The next page goes on from it, if there may be more.
const lastLookedThrough = tenantStatement(
  (_, values: Tenant & PageValues & { lookedThrough: number }) => sql<{ id: string }>`
  SELECT r.id FROM logged_request r WHERE ${inRange(values)}
  ORDER BY r.id DESC OFFSET ${values.lookedThrough}::bigint - 1 LIMIT 1`,
);
