import { sql } from 'kysely';
import { z } from 'zod';
import {
  CREATED_FILTERS,
  idRange,
  Limit,
  listEnvelope,
  type PageRequest,
  type PageValues,
  pageRows,
  pageValues,
  presentList,
  readCardCursor,
  requestedPage,
  requireStartingAfter,
  StartingAfter,
} from '../api/http/list-envelope.ts';
import { declare, resource } from '../api/http/route.ts';
import { exampleList } from '../api/openapi/examples.ts';
import { ApiError } from '../domain/api-error.ts';
import { AuthorizationStatus } from '../domain/authorization.ts';
import { idPattern, isId } from '../domain/ids.ts';
import type { Tenant } from '../domain/mode.ts';
import { AUTHORIZATION_COLUMNS } from '../platform/db/columns.ts';
import { newestRows } from '../platform/db/newest.ts';
import type { Orm } from '../platform/db/orm.ts';
import type { ReadList } from '../platform/db/read-replica.ts';
import { tenantStatement } from '../platform/db/sql.ts';
import {
  AuthorizationResource,
  type AuthorizationRow,
  presentAuthorization,
} from './authorization-resource.ts';
import { AUTHORIZATION } from './examples.ts';

const getAuthorization = declare({
  method: 'get',
  path: '/authorizations/:authorizationId',
  scope: 'cards:read',
  operationId: 'authorizations.get',
  summary: 'Retrieve an authorization',
  description: 'The authorization as it is now.',
  query: z.strictObject({}),
  responses: { 200: AuthorizationResource },
  examples: { 200: AUTHORIZATION },
  errors: ['authorization_not_found'],
});

const listCardAuthorizations = declare({
  method: 'get',
  path: '/cards/:cardId/authorizations',
  scope: 'cards:read',
  operationId: 'authorizations.list',
  summary: "List a card's authorizations",
  description: 'Newest first, declined ones included.',
  query: z.strictObject({
    limit: Limit,
    starting_after: StartingAfter('auth'),
    status: AuthorizationStatus.optional().describe('Only authorizations with this status.'),
    ...CREATED_FILTERS,
  }),
  responses: { 200: listEnvelope(AuthorizationResource) },
  examples: { 200: exampleList(AUTHORIZATION) },
  errors: ['card_not_found'],
});

const listAuthorizations = declare({
  method: 'get',
  path: '/authorizations',
  scope: 'cards:read',
  operationId: 'authorizations.listAll',
  summary: 'List the authorizations of all cards',
  description: 'The authorizations on all of your cards, newest first, declined ones included.',
  query: z.strictObject({
    limit: Limit,
    starting_after: StartingAfter('auth'),
    card_id: z
      .string()
      .regex(new RegExp(idPattern('card')), 'must be the id of a card')
      .optional()
      .describe('Only authorizations of this card.'),
    status: AuthorizationStatus.optional().describe('Only authorizations with this status.'),
    ...CREATED_FILTERS,
  }),
  responses: { 200: listEnvelope(AuthorizationResource) },
  examples: { 200: exampleList(AUTHORIZATION) },
});

export const authorizations = resource(
  { listAuthorizations, getAuthorization, listCardAuthorizations },
  ({ orm, readList }: { orm: Orm; readList: ReadList }) => ({
    async listAuthorizations({ caller, query }) {
      const page = { ...requestedPage(query), cardId: query.card_id, status: query.status };
      const rows = await readList((from) => readAllAuthorizations(from, caller, page));
      return { status: 200, body: presentList(rows, query.limit) };
    },

    getAuthorization: async ({ caller, params }) => ({
      status: 200,
      body: await readAuthorization(orm, caller, params.authorizationId ?? ''),
    }),

    async listCardAuthorizations({ caller, params, query }) {
      const page = { ...requestedPage(query), status: query.status };
      const rows = await readList((from) => readAuthorizationPage(from, caller, params.cardId ?? '', page));
      return { status: 200, body: presentList(rows, query.limit) };
    },
  }),
);

/** @throws ApiError `authorization_not_found`, for an id of another shape as well. */
async function readAuthorization(
  orm: Orm,
  tenant: Tenant,
  authorizationId: string,
): Promise<AuthorizationResource> {
  const [row] = isId('auth', authorizationId) ? await one(orm.em.fork(), tenant, { authorizationId }) : [];
  if (row === undefined) throw new ApiError('authorization_not_found');
  return presentAuthorization(row);
}

const one = tenantStatement(
  (db, { partnerId, mode, authorizationId }: Tenant & { authorizationId: string }) =>
    db
      .selectFrom('card_authorization')
      .select(AUTHORIZATION_COLUMNS)
      .where('partner_id', '=', partnerId)
      .where('mode', '=', mode)
      .where('id', '=', authorizationId),
);

interface AuthorizationPage extends PageRequest {
  status?: AuthorizationStatus | undefined;
}

/**
 * Up to `limit` + 1 authorizations of all cards, newest first, by key. An unknown card has none.
 * @throws ApiError `validation_failed` if `startingAfter` is not an authorization of the tenant.
 */
export async function readAllAuthorizations(
  orm: Orm,
  tenant: Tenant,
  page: AuthorizationPage & { cardId?: string | undefined },
): Promise<AuthorizationResource[]> {
  const { cardId, status } = page;
  const ofCard = status === undefined ? selectOfCard : selectOfCardAndStatus;
  const ofAll = status === undefined ? selectAll : selectOfStatus;
  const read = cardId === undefined ? ofAll : ofCard;
  const values = { ...pageValues(page), cardId: cardId ?? '', status: status ?? 'pending' };
  const rows = await read(orm.em.fork(), tenant, values);
  return pageRows<AuthorizationRow>(rows, 'an authorization').map(presentAuthorization);
}

/**
 * Up to `limit` + 1 authorizations of a card, newest first, by key.
 * @throws ApiError `card_not_found`; `validation_failed` if `startingAfter` is not an authorization of the
 * card.
 */
export async function readAuthorizationPage(
  orm: Orm,
  tenant: Tenant,
  cardId: string,
  page: AuthorizationPage,
): Promise<AuthorizationResource[]> {
  const { status = 'pending' } = page;
  const read = page.status === undefined ? selectPage : selectPageByStatus;
  const values = { ...pageValues(page), cardId, status };
  const rows = isId('card', cardId) ? await read(orm.em.fork(), tenant, values) : [];
  if (rows.length === 0) throw new ApiError('card_not_found');
  return pageRows<AuthorizationRow>(rows, 'an authorization of this card').map(presentAuthorization);
}

type ListValues = Tenant & PageValues & { cardId: string; status: AuthorizationStatus };

type Key = Parameters<typeof newestRows<'card_authorization', never>>[0]['where'];

const newestAuthorizations = (values: ListValues, where: Key) =>
  newestRows({
    table: 'card_authorization',
    columns: AUTHORIZATION_COLUMNS,
    id: 'id',
    ...idRange('auth', values),
    limit: values.limit,
    where,
  });

const allStatement = (key: (values: ListValues) => Key) =>
  tenantStatement((db, values: ListValues) =>
    db
      .selectFrom(requireStartingAfter('card_authorization', values).as('k'))
      .leftJoin(newestAuthorizations(values, key(values)).as('page'), (join) =>
        join.on('page.partner_id', '=', values.partnerId).on('page.mode', '=', values.mode),
      )
      .select('k.known')
      .selectAll('page')
      .orderBy('page.id', 'desc'),
  );
const selectAll = allStatement(({ partnerId, mode }) => ({ partner_id: partnerId, mode }));
const selectOfStatus = allStatement(({ partnerId, mode, status }) => ({
  partner_id: partnerId,
  mode,
  status,
}));

const ofCardStatement = (key: (values: ListValues) => Key) =>
  tenantStatement((db, values: ListValues) =>
    db
      .selectFrom(requireStartingAfter('card_authorization', values).as('k'))
      .leftJoin('card as c', (join) =>
        join
          .on('c.partner_id', '=', values.partnerId)
          .on('c.mode', '=', values.mode)
          .on('c.id', '=', values.cardId),
      )
      .leftJoinLateral(
        newestAuthorizations(values, { card_id: sql.ref('c.id'), ...key(values) }).as('page'),
        (join) => join.onTrue(),
      )
      .select('k.known')
      .selectAll('page')
      .orderBy('page.id', 'desc'),
  );
const selectOfCard = ofCardStatement(() => ({}));
const selectOfCardAndStatus = ofCardStatement(({ status }) => ({ status }));

/**
 * One row for each authorization of the page, with the card; if the page is empty, one row with only the
 * card.
 */
const pageStatement = (key: (values: ListValues) => Key) =>
  tenantStatement((db, values: ListValues) =>
    db
      .selectFrom('card as c')
      .leftJoinLateral(
        newestAuthorizations(values, { card_id: sql.ref('c.id'), ...key(values) }).as('page'),
        (join) => join.onTrue(),
      )
      .select(readCardCursor('card_authorization', values))
      .selectAll('page')
      .where('c.partner_id', '=', values.partnerId)
      .where('c.mode', '=', values.mode)
      .where('c.id', '=', values.cardId)
      .orderBy('page.id', 'desc'),
  );
const selectPage = pageStatement(() => ({}));
const selectPageByStatus = pageStatement(({ status }) => ({ status }));
