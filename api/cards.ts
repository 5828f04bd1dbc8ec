import { z } from 'zod';
import { issueInTestMode, type TestIssuanceContext } from '../commands/funding/test-mode.ts';
import { CARD_COLUMNS, cardColumns, of } from '../db/columns.ts';
import { newestOf } from '../db/newest.ts';
import type { Orm } from '../db/orm.ts';
import { tenantStatement } from '../db/sql.ts';
import { tenantQuery } from '../db/tenant-query.ts';
import { ApiError } from '../domain/api-error.ts';
import { CardStatus } from '../domain/card-status.ts';
import { Line } from '../domain/fields.ts';
import { isId, siblingId } from '../domain/ids.ts';
import type { Tenant } from '../domain/tenant.ts';
import { CardResource, type CardRow, CreateCardRequest, presentCard } from '../resources/card.ts';
import { issueCardWorkflowId } from '../workflows/messages.ts';
import { type FundingDependencies, issueCard } from './fund-card.ts';
import { claimOperation, keyedRequest, replyOnce } from './http/claim-operation.ts';
import { Limit, listOf, presentList, StartingAfter } from './http/list-envelope.ts';
import { replay } from './http/replay.ts';
import { declare, resource } from './http/route.ts';
import * as EXAMPLES from './openapi/examples.ts';

const createCard = declare({
  method: 'post',
  path: '/cards',
  operationId: 'cards.create',
  summary: 'Create a card',
  description:
    'Issues a card and funds it. The amount and its fees are debited from your balance; see `POST /quotes`. 201: the ' +
    'card is active. 202: it is being issued; wait for `card.issued` or `card.issue_failed`, or poll ' +
    '`GET /cards/{cardId}`.',
  idempotencyKey: 'required',
  liveIsWorkflow: true,
  query: z.strictObject({}),
  body: CreateCardRequest,
  responses: { 201: CardResource, 202: CardResource },
  examples: {
    body: EXAMPLES.CREATE_CARD,
    201: EXAMPLES.CARD,
    202: EXAMPLES.PENDING_CARD,
  },
  errors: [
    ...(['insufficient_funds', 'provider_declined', 'external_ref_taken', 'idempotency_in_flight'] as const),
    ...(['no_product_configured', 'limit_exceeded', 'idempotency_conflict', 'product_not_allowed'] as const),
  ],
});

const getCard = declare({
  method: 'get',
  path: '/cards/:cardId',
  operationId: 'cards.get',
  summary: 'Retrieve a card',
  description: 'The card as it is now. Poll this while the card is `funding_pending`.',
  query: z.strictObject({}),
  responses: { 200: CardResource },
  examples: { 200: EXAMPLES.CARD },
  errors: ['card_not_found'],
});

const listCards = declare({
  method: 'get',
  path: '/cards',
  operationId: 'cards.list',
  summary: 'List cards',
  description: 'Newest first.',
  query: z.strictObject({
    limit: Limit,
    starting_after: StartingAfter('card'),
    external_ref: Line(255).optional().describe('Only the card with this `external_ref`.'),
    status: CardStatus.optional().describe('Only cards with this status.'),
  }),
  responses: { 200: listOf(CardResource) },
  examples: { 200: EXAMPLES.listOf(EXAMPLES.CARD) },
});

export const cards = resource(
  { createCard, getCard, listCards },
  (dependencies: FundingDependencies & TestIssuanceContext) => ({
    async createCard(input) {
      const { partnerId, mode } = input.caller;
      const request = keyedRequest('create_card', input, null);
      if (mode === 'test') {
        const answer = await issueInTestMode(dependencies, request, input.body);
        return replyOnce(answer, dependencies.eventsWritten);
      }
      const claim = await claimOperation(dependencies, request, input.body);
      if (claim.outcome === 'replay') return replay(claim.response);
      const { claimId } = claim;
      input.log({ workflowId: issueCardWorkflowId(siblingId('card', claimId)) });
      return issueCard(dependencies, { claimId, partnerId, mode }, input.passTurn);
    },

    getCard: async ({ caller, params }) => ({
      status: 200,
      body: await readCard(dependencies.orm, caller, params.cardId ?? ''),
    }),

    async listCards({ caller, query }) {
      const { limit, starting_after: startingAfter, external_ref: externalRef, status } = query;
      const cards = await readCardPage(dependencies.orm, caller, {
        limit,
        startingAfter,
        externalRef,
        status,
      });
      return { status: 200, body: presentList(cards, limit) };
    },
  }),
);

interface ReadRow extends CardRow {
  balance_cents: string | null;
}

/** The card's id in a path. @throws ApiError `card_not_found` for what does not look like one: it can't exist. */
export function cardIdOf({ params: { cardId = '' } }: { params: Record<string, string> }): string {
  if (!isId('card', cardId)) throw new ApiError('card_not_found');
  return cardId;
}

/** @throws ApiError `card_not_found`, for an id of another shape as well. */
export async function readCard(orm: Orm, tenant: Tenant, cardId: string): Promise<CardResource> {
  const [row] = isId('card', cardId) ? await one(orm.em.fork(), tenant, { cardId }) : [];
  if (row === undefined) throw new ApiError('card_not_found');
  return present(row);
}

export interface CardPage {
  limit: number;
  startingAfter?: string | undefined;
  externalRef?: string | undefined;
  status?: string | undefined;
}

/**
 * Up to `limit` + 1 cards, newest first, by key.
 * @throws ApiError `validation_failed` where `startingAfter` is no card of the tenant.
 */
export async function readCardPage(orm: Orm, tenant: Tenant, page: CardPage): Promise<CardResource[]> {
  const values: unknown[] = [page.limit + 1];
  const bind = (value: unknown) => `$${values.push(value) + 2}`;
  const after = page.startingAfter === undefined ? undefined : bind(page.startingAfter);
  const newest = (filter: Record<string, string>) =>
    newestOf({
      table: 'card',
      columns: cardColumns('card'),
      where: { partner_id: '$1', mode: '$2', ...filter },
      id: 'id',
      before: after,
      limit: '$3',
    });
  const selected = (): string => {
    const { externalRef: ref, status } = page;
    if (ref === undefined) return newest(status === undefined ? {} : { status: bind(status) });
    // Cards that failed can share it: a page of each status by the index of both, and the newest of them all.
    const statuses = bind(status === undefined ? CardStatus.options : [status]);
    return `SELECT one.* FROM unnest(${statuses}::text[]) wanted (status)
        CROSS JOIN LATERAL (${newest({ external_ref: bind(ref), status: 'wanted.status' })}) one
      ORDER BY one.id DESC LIMIT $3`;
  };
  const rows = await tenantQuery<ReadRow & { known: boolean }>(
    orm.em.fork(),
    tenant,
    `SELECT k.known, page.*, a.posted AS balance_cents
     FROM (SELECT ${after === undefined ? 'true' : KNOWN(after)} AS known) k
     LEFT JOIN (${selected()}) page ON page.partner_id = $1 AND page.mode = $2
     ${BALANCE}
     ORDER BY page.id DESC`,
    values,
  );
  if (rows[0]?.known === false)
    throw ApiError.ofField('starting_after', 'starting_after is not the id of a card');
  return rows.filter((row) => row.id !== null).map(present);
}

// LIMIT keeps the planner from joining all accounts where one card's is wanted, however wrong its estimates are.
const BALANCE =
  'LEFT JOIN LATERAL (SELECT posted FROM ledger.account WHERE card_id = page.id LIMIT 1) a ON true';

const one = tenantStatement((db, { partnerId, mode, cardId }: Tenant & { cardId: string }) =>
  db
    .selectFrom('card as c')
    .leftJoin('ledger.account as a', 'a.card_id', 'c.id')
    .select(of('c', CARD_COLUMNS))
    .select('a.posted as balance_cents')
    .where('c.partner_id', '=', partnerId)
    .where('c.mode', '=', mode)
    .where('c.id', '=', cardId),
);

const KNOWN = (after: string) =>
  `EXISTS (SELECT FROM card WHERE partner_id = $1 AND mode = $2 AND id = ${after})`;

function present(row: ReadRow): CardResource {
  return presentCard(row, Number(row.balance_cents ?? 0));
}
