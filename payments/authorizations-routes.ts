import {
  accountPage,
  accountPageOfCard,
  CardFilter,
  type CardPageValues,
  cardPage,
  declareList,
  pageRows,
  pageValues,
} from '../api/http/list.ts';
import { type PageRequest, presentList } from '../api/http/list-envelope.ts';
import { declare, resource } from '../api/http/route.ts';
import { requestedCardId } from '../cards/routes.ts';
import { ApiError } from '../domain/api-error.ts';
import { AuthorizationStatus } from '../domain/authorization.ts';
import { isId } from '../domain/ids.ts';
import type { Tenant } from '../domain/mode.ts';
import { AUTHORIZATION_COLUMNS } from '../platform/db/columns.ts';
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
  responses: { 200: AuthorizationResource },
  examples: { 200: AUTHORIZATION },
  errors: ['authorization_not_found'],
});

const listCardAuthorizations = declareList({
  path: '/cards/:cardId/authorizations',
  scope: 'cards:read',
  operationId: 'authorizations.list',
  summary: "List a card's authorizations",
  description: 'Newest first, declined ones included.',
  idPrefix: 'auth',
  item: AuthorizationResource,
  example: AUTHORIZATION,
  filters: { status: AuthorizationStatus.optional().describe('Only authorizations with this status.') },
  errors: ['card_not_found'],
});

const listAuthorizations = declareList({
  path: '/authorizations',
  scope: 'cards:read',
  operationId: 'authorizations.listAll',
  summary: 'List the authorizations of all cards',
  description: 'The authorizations on all of your cards, newest first, declined ones included.',
  idPrefix: 'auth',
  item: AuthorizationResource,
  example: AUTHORIZATION,
  filters: {
    card_id: CardFilter.describe('Only authorizations of this card.'),
    status: AuthorizationStatus.optional().describe('Only authorizations with this status.'),
  },
});

export const authorizations = resource(
  { listAuthorizations, getAuthorization, listCardAuthorizations },
  ({ orm, readList }: { orm: Orm; readList: ReadList }) => ({
    async listAuthorizations({ caller, query }) {
      const rows = await readList((from) => readAllAuthorizations(from, caller, query));
      return { status: 200, body: presentList(rows, query.limit) };
    },

    getAuthorization: async ({ caller, params }) => ({
      status: 200,
      body: await readAuthorization(orm, caller, params.authorizationId ?? ''),
    }),

    async listCardAuthorizations({ caller, params, query }) {
      const cardId = requestedCardId({ params });
      const rows = await readList((from) => readAuthorizationPage(from, caller, cardId, query));
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
 * @throws ApiError `validation_failed` if `starting_after` is not an authorization of the tenant.
 */
export async function readAllAuthorizations(
  orm: Orm,
  tenant: Tenant,
  page: AuthorizationPage & { card_id?: string | undefined },
): Promise<AuthorizationResource[]> {
  const { card_id: cardId = '', status = 'pending' } = page;
  const ofAll = page.status === undefined ? selectAll : selectOfStatus;
  const ofCard = page.status === undefined ? selectOfCard : selectOfCardAndStatus;
  const read = page.card_id === undefined ? ofAll : ofCard;
  const rows = await read(orm.em.fork(), tenant, { ...pageValues(page), cardId, status });
  return pageRows<AuthorizationRow>(rows, 'an authorization').map(presentAuthorization);
}

/**
 * Up to `limit` + 1 authorizations of a card, newest first, by key.
 * @throws ApiError `card_not_found`; `validation_failed` if `starting_after` is not an authorization of the
 * card.
 */
export async function readAuthorizationPage(
  orm: Orm,
  tenant: Tenant,
  cardId: string,
  page: AuthorizationPage,
): Promise<AuthorizationResource[]> {
  const { status = 'pending' } = page;
  const read = page.status === undefined ? selectCardPage : selectCardPageOfStatus;
  const rows = await read(orm.em.fork(), tenant, { ...pageValues(page), cardId, status });
  return pageRows<AuthorizationRow>(rows, 'an authorization of this card').map(presentAuthorization);
}

const AUTHORIZATIONS = {
  table: 'card_authorization',
  columns: AUTHORIZATION_COLUMNS,
  idPrefix: 'auth',
} as const;

type Values = CardPageValues & { status: AuthorizationStatus };

const selectAll = tenantStatement((db, values: Values) => accountPage(db, values, AUTHORIZATIONS, {}));
const selectOfStatus = tenantStatement((db, values: Values) =>
  accountPage(db, values, AUTHORIZATIONS, { status: values.status }),
);
const selectOfCard = tenantStatement((db, values: Values) =>
  accountPageOfCard(db, values, AUTHORIZATIONS, {}),
);
const selectOfCardAndStatus = tenantStatement((db, values: Values) =>
  accountPageOfCard(db, values, AUTHORIZATIONS, { status: values.status }),
);
const selectCardPage = tenantStatement((db, values: Values) => cardPage(db, values, AUTHORIZATIONS, {}));
const selectCardPageOfStatus = tenantStatement((db, values: Values) =>
  cardPage(db, values, AUTHORIZATIONS, { status: values.status }),
);
