import { type RawBuilder, sql } from 'kysely';
import { z } from 'zod';
import {
  accountKey,
  declareList,
  idRange,
  newestListed,
  type PageValues,
  pageOf,
  pageRows,
  pageValues,
} from '../api/http/list.ts';
import { type PageRequest, presentList } from '../api/http/list-envelope.ts';
import { declare, resource } from '../api/http/route.ts';
import { ApiError } from '../domain/api-error.ts';
import type { Tenant } from '../domain/mode.ts';
import { readIdTime } from '../platform/crypto/new-id.ts';
import { clockAhead, OPERATION_COLUMNS } from '../platform/db/columns.ts';
import type { Orm } from '../platform/db/orm.ts';
import type { ReadList } from '../platform/db/read-replica.ts';
import { columnList, tenantStatement } from '../platform/db/sql.ts';
import { OPERATION } from './examples.ts';
import { OperationResource, type OperationRow, presentOperation } from './resource.ts';
import { claimOfOperation, OperationStatus } from './rules.ts';

const getOperation = declare({
  method: 'get',
  path: '/operations/:operationId',
  operationId: 'operations.get',
  summary: 'Retrieve an operation',
  description:
    'What became of a request that had an Idempotency-Key, by the `Operation-Id` of any response to it. Operations are kept for 30 days.',
  scope: 'cards:read',
  responses: { 200: OperationResource },
  examples: { 200: OPERATION },
  errors: ['operation_not_found'],
});

const listOperations = declareList({
  path: '/operations',
  operationId: 'operations.list',
  summary: 'List operations',
  description:
    'The operations of the last 30 days, newest first. With `idempotency_key`, there is one at most.',
  scope: 'cards:read',
  idPrefix: 'op',
  item: OperationResource,
  example: OPERATION,
  filters: {
    idempotency_key: z
      .string()
      .regex(/^[\x20-\x7e]{1,255}$/, 'must have 1 to 255 printable ASCII characters')
      .optional()
      .describe('Only the operation of the request with this Idempotency-Key.'),
    status: OperationStatus.optional().describe('Only operations with this status.'),
  },
});

export const operations = resource(
  { listOperations, getOperation },
  ({ orm, readList }: { orm: Orm; readList: ReadList }) => ({
    async listOperations({ caller, query }) {
      const rows = await readList((from) => readOperationPage(from, caller, query));
      return { status: 200, body: presentList(rows, query.limit) };
    },

    getOperation: async ({ caller, params }) => ({
      status: 200,
      body: await readOperation(orm, caller, params.operationId ?? ''),
    }),
  }),
);

/** @throws ApiError `operation_not_found`, for an id of another shape as well. */
async function readOperation(orm: Orm, tenant: Tenant, id: string): Promise<OperationResource> {
  const claimId = claimOfOperation(id);
  const [row] = claimId === null ? [] : await one(orm.em.fork(), tenant, { claimId });
  if (row === undefined) throw new ApiError('operation_not_found');
  return presentOperation(row, readIdTime(row.id));
}

const one = tenantStatement((db, { partnerId, mode, claimId }: Tenant & { claimId: string }) =>
  db
    .selectFrom('idempotency_claim')
    .select(OPERATION_COLUMNS)
    .select(clockAhead('idempotency_claim'))
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .where('id', '=', claimId)
    .where('operation_status', 'is not', null)
    .$narrowType<{ key: string; operation_status: OperationStatus }>(),
);

interface OperationPage extends PageRequest {
  idempotency_key?: string | undefined;
  status?: OperationStatus | undefined;
}

/**
 * Up to `limit` + 1 operations, newest first, by key.
 * @throws ApiError `validation_failed` if `starting_after` is not an operation of the tenant.
 */
export async function readOperationPage(
  orm: Orm,
  tenant: Tenant,
  page: OperationPage,
): Promise<OperationResource[]> {
  const { idempotency_key: key, status } = page;
  const cursor = page.starting_after && (claimOfOperation(page.starting_after) ?? undefined);
  const values = {
    ...pageValues({ ...page, starting_after: cursor }),
    key: key ?? '',
    statuses: status === undefined ? OperationStatus.options : [status],
  };
  const read = key === undefined ? selectPage : selectUnderKey;
  const rows = await read(orm.em.fork(), tenant, values);
  return pageRows<OperationRow>(rows, 'an operation').map((row) => presentOperation(row, readIdTime(row.id)));
}

type OperationPageValues = Tenant & PageValues & { key: string; statuses: readonly OperationStatus[] };

const pageStatement = (newest: (values: OperationPageValues) => RawBuilder<OperationRow>) =>
  tenantStatement((db, values: OperationPageValues) =>
    pageOf(db, values, 'idempotency_claim', newest(values)).select(clockAhead('page')),
  );

// Reads a page of each requested status through the index on it, and keeps the newest. What is no operation
// has no status.
const selectPage = pageStatement((values) => {
  const ofStatus = newestListed(
    { table: 'idempotency_claim', columns: OPERATION_COLUMNS, idPrefix: 'claim' },
    values,
    { ...accountKey(values), operation_status: sql.ref('wanted.status') },
  );
  return sql`(select one.* from unnest(${values.statuses}::text[]) wanted (status) cross
    join lateral ${ofStatus} one
    order by one.id desc limit ${values.limit})`;
});

const selectUnderKey = pageStatement((values) => {
  const { partnerId, mode, key, statuses } = values;
  const { from, before } = idRange('claim', values);
  return sql`(
    select ${columnList('idempotency_claim', OPERATION_COLUMNS)} from idempotency_claim
    where partner_id = ${partnerId} and mode = ${mode} and key = ${key}
      and operation_status = any (${statuses})
      and id >= ${from} and id < ${before} limit 1)`;
});
