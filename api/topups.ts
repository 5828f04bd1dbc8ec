import { z } from 'zod';
import { topUpInTestMode } from '../commands/funding/test-mode.ts';
import { of, TOPUP_COLUMNS, topUpColumns } from '../db/columns.ts';
import { newestOf } from '../db/newest.ts';
import type { Orm } from '../db/orm.ts';
import { tenantStatement } from '../db/sql.ts';
import { tenantQuery } from '../db/tenant-query.ts';
import { ApiError } from '../domain/api-error.ts';
import { isId, siblingId } from '../domain/ids.ts';
import type { Tenant } from '../domain/tenant.ts';
import { presentTopUp, TopUpRequest, TopUpResource, type TopUpRow } from '../resources/topup.ts';
import { topUpCardWorkflowId } from '../workflows/messages.ts';
import { cardIdOf, readCard } from './cards.ts';
import { type FundingDependencies, topUpCard } from './fund-card.ts';
import { claimOperation, keyedRequest, replyOnce } from './http/claim-operation.ts';
import { Limit, listOf, presentList, StartingAfter } from './http/list-envelope.ts';
import { replay } from './http/replay.ts';
import { declare, resource } from './http/route.ts';
import * as EXAMPLES from './openapi/examples.ts';

const createTopUp = declare({
  method: 'post',
  path: '/cards/:cardId/topups',
  operationId: 'topups.create',
  summary: 'Top up a card',
  description:
    'The card has to be active. The amount and its fees are debited from your balance. 201: the money is on the card. ' +
    '202: the card is being loaded; wait for `topup.succeeded` or `topup.failed`, or poll `GET /topups/{topupId}`.',
  idempotencyKey: 'required',
  liveIsWorkflow: true,
  query: z.strictObject({}),
  body: TopUpRequest,
  responses: { 201: TopUpResource, 202: TopUpResource },
  examples: { body: { amount: 2_500 }, 201: EXAMPLES.TOPUP, 202: EXAMPLES.PENDING_TOPUP },
  errors: [
    ...(['insufficient_funds', 'provider_declined', 'card_not_found'] as const),
    ...(['invalid_state', 'idempotency_in_flight', 'limit_exceeded', 'idempotency_conflict'] as const),
  ],
});

const getTopUp = declare({
  method: 'get',
  path: '/topups/:topupId',
  operationId: 'topups.get',
  summary: 'Retrieve a top-up',
  description: 'The top-up as it is now. Poll this while it is `pending`.',
  query: z.strictObject({}),
  responses: { 200: TopUpResource },
  examples: { 200: EXAMPLES.TOPUP },
  errors: ['topup_not_found'],
});

const listTopUps = declare({
  method: 'get',
  path: '/cards/:cardId/topups',
  operationId: 'topups.list',
  summary: "List a card's top-ups",
  description: 'Newest first.',
  query: z.strictObject({ limit: Limit, starting_after: StartingAfter('topup') }),
  responses: { 200: listOf(TopUpResource) },
  examples: { 200: EXAMPLES.listOf(EXAMPLES.TOPUP) },
  errors: ['card_not_found'],
});

export const topups = resource(
  { createTopUp, getTopUp, listTopUps },
  (dependencies: FundingDependencies) => ({
    async createTopUp(input) {
      const { partnerId, mode } = input.caller;
      if (mode === 'test') {
        const request = keyedRequest('top_up_card', input, cardIdOf(input));
        const answer = await topUpInTestMode(dependencies, request, input.body);
        return replyOnce(answer, dependencies.eventsWritten);
      }
      const { id: cardId } = await readCard(dependencies.orm, input.caller, input.params.cardId ?? '');
      if (!dependencies.liveNetworkConfigured) {
        throw new ApiError('unavailable', { message: 'Live mode has no card network yet. Contact us.' });
      }
      const claim = await claimOperation(
        dependencies,
        keyedRequest('top_up_card', input, cardId),
        input.body,
      );
      if (claim.outcome === 'replay') return replay(claim.response);
      const { claimId } = claim;
      input.log({ workflowId: topUpCardWorkflowId(siblingId('topup', claimId)) });
      return topUpCard(dependencies, { claimId, cardId, partnerId, mode }, input.passTurn);
    },

    getTopUp: async ({ caller, params }) => ({
      status: 200,
      body: await readTopUp(dependencies.orm, caller, params.topupId ?? ''),
    }),

    async listTopUps({ caller, params, query: { limit, starting_after: startingAfter } }) {
      const cardId = params.cardId ?? '';
      const topUps = await readTopUpPage(dependencies.orm, caller, { cardId, limit, startingAfter });
      return { status: 200, body: presentList(topUps, limit) };
    },
  }),
);

interface ReadRow extends TopUpRow {
  balance_cents: string | null;
}

/** @throws ApiError `topup_not_found`, for an id of another shape as well. */
export async function readTopUp(orm: Orm, tenant: Tenant, topUpId: string): Promise<TopUpResource> {
  const [row] = isId('topup', topUpId) ? await one(orm.em.fork(), tenant, { topUpId }) : [];
  if (row === undefined) throw new ApiError('topup_not_found');
  return present(row);
}

export interface TopUpPage {
  cardId: string;
  limit: number;
  startingAfter?: string | undefined;
}

/**
 * Up to `limit` + 1 top-ups of a card, newest first, by key.
 * @throws ApiError `card_not_found`; `validation_failed` where `startingAfter` is no top-up of the card.
 */
export async function readTopUpPage(orm: Orm, tenant: Tenant, page: TopUpPage): Promise<TopUpResource[]> {
  const { cardId, limit, startingAfter } = page;
  const [first, ...rest] = isId('card', cardId)
    ? await tenantQuery<ReadRow & { known: boolean }>(
        orm.em.fork(),
        tenant,
        startingAfter === undefined ? NEWEST : AFTER,
        [cardId, limit + 1, ...(startingAfter === undefined ? [] : [startingAfter])],
      )
    : [];
  if (first === undefined) throw new ApiError('card_not_found');
  if (!first.known) {
    throw ApiError.ofField('starting_after', 'starting_after is not the id of a top-up of this card');
  }
  return [first, ...rest].filter((row) => row.id !== null).map(present);
}

const one = tenantStatement((db, { partnerId, mode, topUpId }: Tenant & { topUpId: string }) =>
  db
    .selectFrom('topup as t')
    .leftJoin('ledger.account as a', 'a.card_id', 't.card_id')
    .select(of('t', TOPUP_COLUMNS))
    .select('a.posted as balance_cents')
    .where('t.partner_id', '=', partnerId)
    .where('t.mode', '=', mode)
    .where('t.id', '=', topUpId),
);

/** The card, with each top-up of the page; with none a row that has the card alone. */
const page = (known: string, before?: string): string => `
  SELECT ${known} AS known, page.*, a.posted AS balance_cents
  FROM card c
  LEFT JOIN LATERAL (${newestOf({
    table: 'topup',
    columns: topUpColumns('topup'),
    where: { card_id: 'c.id' },
    id: 'id',
    before,
    limit: '$4',
  })}) page ON true
  LEFT JOIN ledger.account a ON a.card_id = c.id
  WHERE c.partner_id = $1 AND c.mode = $2 AND c.id = $3
  ORDER BY page.id DESC`;

const NEWEST = page('true');
const AFTER = page('EXISTS (SELECT FROM topup k WHERE k.card_id = c.id AND k.id = $5)', '$5');

function present(row: ReadRow): TopUpResource {
  return presentTopUp(row, Number(row.balance_cents ?? 0));
}
