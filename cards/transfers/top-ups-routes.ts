import { sql } from 'kysely';
import { z } from 'zod';
import { type RespondingDependencies, respondToClaimed } from '../../api/http/claimed-work.ts';
import { claimOperation, keyedRequest, replay, replyAs, replyOnce } from '../../api/http/keyed.ts';
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
  StartingAfter,
} from '../../api/http/list-envelope.ts';
import { declare, resource } from '../../api/http/route.ts';
import { exampleList } from '../../api/openapi/examples.ts';
import { ApiError } from '../../domain/api-error.ts';
import { isId } from '../../domain/ids.ts';
import type { Tenant } from '../../domain/mode.ts';
import { of, TOPUP_COLUMNS } from '../../platform/db/columns.ts';
import { newestRows } from '../../platform/db/newest.ts';
import type { Orm } from '../../platform/db/orm.ts';
import type { ReadList } from '../../platform/db/read-replica.ts';
import { tenantStatement } from '../../platform/db/sql.ts';
import { topUpCardWorkflowId } from '../../workflows/messages.ts';
import { PENDING_TOPUP, TOPUP } from '../examples.ts';
import { requestedCardId, requireCard } from '../routes.ts';
import { acceptTopUp } from './end-top-up.ts';
import { beginTopUp, topUpInTestMode } from './top-up.ts';
import { presentTopUp, TopUpRequest, TopUpResource, type TopUpRow } from './top-up-resource.ts';

const createTopUp = declare({
  method: 'post',
  path: '/cards/:cardId/topups',
  scope: 'cards:write',
  operationId: 'topups.create',
  summary: 'Top up a card',
  description:
    'The card has to be active. The amount and its fees are debited from your balance. 201: the money is on the card. ' +
    '202: the top-up is pending; wait for `topup.succeeded` or `topup.failed`, or poll `GET /topups/{topupId}`.',
  idempotencyKey: 'required',
  liveIsWorkflow: true,
  query: z.strictObject({}),
  body: TopUpRequest,
  responses: { 201: TopUpResource, 202: TopUpResource },
  examples: { body: { amount: 2_500 }, 201: TOPUP, 202: PENDING_TOPUP },
  errors: [
    'insufficient_funds',
    'provider_declined',
    'card_not_found',
    'invalid_state',
    'idempotency_in_flight',
    'limit_exceeded',
    'idempotency_conflict',
  ],
});

const getTopUp = declare({
  method: 'get',
  path: '/topups/:topupId',
  scope: 'cards:read',
  operationId: 'topups.get',
  summary: 'Retrieve a top-up',
  description: 'The top-up as it is now. Poll this while it is `pending`.',
  query: z.strictObject({}),
  responses: { 200: TopUpResource },
  examples: { 200: TOPUP },
  errors: ['topup_not_found'],
});

const listTopUps = declare({
  method: 'get',
  path: '/cards/:cardId/topups',
  scope: 'cards:read',
  operationId: 'topups.list',
  summary: "List a card's top-ups",
  description: 'Newest first.',
  query: z.strictObject({ limit: Limit, starting_after: StartingAfter('topup'), ...CREATED_FILTERS }),
  responses: { 200: listEnvelope(TopUpResource) },
  examples: { 200: exampleList(TOPUP) },
  errors: ['card_not_found'],
});

export interface TopUpDependencies extends RespondingDependencies {
  /** Whether live mode has a card network. */
  liveNetworkConfigured: boolean;
  readList: ReadList;
  topUpDeadlineMs: number;
}

export const topups = resource({ createTopUp, getTopUp, listTopUps }, (dependencies: TopUpDependencies) => ({
  async createTopUp(input) {
    const { partnerId, mode } = input.caller;
    if (mode === 'test') {
      const request = keyedRequest('top_up_card', input, requestedCardId(input));
      const response = await topUpInTestMode(dependencies, request, input.body);
      return replyOnce(response, dependencies.eventsWritten);
    }
    const { id: cardId } = await requireCard(dependencies.orm, input.caller, input.params.cardId ?? '');
    if (!dependencies.liveNetworkConfigured) {
      throw new ApiError('unavailable', {
        message: 'No card network is configured for live mode. Contact us.',
      });
    }
    const claim = await claimOperation(dependencies, keyedRequest('top_up_card', input, cardId), input.body);
    if (claim.outcome === 'replay') return replay(claim);
    const { claimId, resourceId: topUpId } = claim;
    input.log({ workflowId: topUpCardWorkflowId(topUpId) });
    const { taskQueue, topUpDeadlineMs: deadlineMs } = dependencies;
    const about = { claimId, topUpId, cardId, partnerId, mode };
    const workflow = { ...about, operation: 'top_up_card', taskQueue, deadlineMs } as const;
    const response = await respondToClaimed(dependencies, workflow, {
      passTurn: input.passTurn,
      // If no worker has held the money in time, it is held here, so that every 202 has money behind it.
      async answer() {
        await beginTopUp(dependencies, claimId);
        await acceptTopUp(dependencies, claimId);
      },
    });
    return replyAs(claimId, response);
  },

  getTopUp: async ({ caller, params }) => ({
    status: 200,
    body: await readTopUp(dependencies.orm, caller, params.topupId ?? ''),
  }),

  async listTopUps({ caller, params, query }) {
    const cardId = params.cardId ?? '';
    const topUps = await dependencies.readList((orm) =>
      readTopUpPage(orm, caller, { cardId, ...requestedPage(query) }),
    );
    return { status: 200, body: presentList(topUps, query.limit) };
  },
}));

interface ReadRow extends TopUpRow {
  balance_cents: string | null;
}

/** @throws ApiError `topup_not_found`, for an id of another shape as well. */
async function readTopUp(orm: Orm, tenant: Tenant, topUpId: string): Promise<TopUpResource> {
  const [row] = isId('topup', topUpId) ? await one(orm.em.fork(), tenant, { topUpId }) : [];
  if (row === undefined) throw new ApiError('topup_not_found');
  return present(row);
}

interface TopUpPage extends PageRequest {
  cardId: string;
}

/**
 * Up to `limit` + 1 top-ups of a card, newest first, by key.
 * @throws ApiError `card_not_found`; `validation_failed` if `startingAfter` is not a top-up of the card.
 */
export async function readTopUpPage(orm: Orm, tenant: Tenant, page: TopUpPage): Promise<TopUpResource[]> {
  const { cardId } = page;
  const rows = isId('card', cardId)
    ? await selectPage(orm.em.fork(), tenant, { ...pageValues(page), cardId })
    : [];
  if (rows.length === 0) throw new ApiError('card_not_found');
  return pageRows<ReadRow>(rows, 'a top-up of this card').map(present);
}

const one = tenantStatement((db, { partnerId, mode, topUpId }: Tenant & { topUpId: string }) =>
  db
    .selectFrom('topup as t')
    .leftJoin('ledger.account as a', (join) =>
      join
        .onRef('a.card_id', '=', 't.card_id')
        .onRef('a.partner_id', '=', 't.partner_id')
        .onRef('a.mode', '=', 't.mode'),
    )
    .select(of('t', TOPUP_COLUMNS))
    .select('a.posted as balance_cents')
    .where('t.partner_id', '=', partnerId)
    .where('t.mode', '=', mode)
    .where('t.id', '=', topUpId),
);

// One row for each top-up of the page, with the card; if the page is empty, one row with only the card.
const selectPage = tenantStatement((db, values: Tenant & PageValues & { cardId: string }) => {
  const { partnerId, mode, cardId, limit } = values;
  return db
    .selectFrom('card as c')
    .leftJoinLateral(
      newestRows({
        table: 'topup',
        columns: TOPUP_COLUMNS,
        id: 'id',
        ...idRange('topup', values),
        limit,
        where: { card_id: sql.ref('c.id') },
      }).as('page'),
      (join) => join.onTrue(),
    )
    .leftJoin('ledger.account as a', (join) =>
      join
        .onRef('a.card_id', '=', 'c.id')
        .onRef('a.partner_id', '=', 'c.partner_id')
        .onRef('a.mode', '=', 'c.mode'),
    )
    .select(readCardCursor('topup', values))
    .selectAll('page')
    .select('a.posted as balance_cents')
    .where('c.partner_id', '=', partnerId)
    .where('c.mode', '=', mode)
    .where('c.id', '=', cardId)
    .orderBy('page.id', 'desc');
});

function present(row: ReadRow): TopUpResource {
  return presentTopUp(row, Number(row.balance_cents ?? 0));
}
