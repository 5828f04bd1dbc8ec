import { sql } from 'kysely';
import { timeOf } from '../../crypto/new-id.ts';
import { of, TOPUP_COLUMNS } from '../../db/columns.ts';
import { readStatement, writeStatement } from '../../db/sql.ts';
import { ApiError } from '../../domain/api-error.ts';
import type { TopUpDecision } from '../../domain/decision.ts';
import { type Fee, quoteFunding } from '../../domain/fees.ts';
import { checkLimits } from '../../domain/limits.ts';
import { MAX_AMOUNT_CENTS } from '../../domain/money.ts';
import { type TopUpFailureCode, topUpNotPossible, topUpOfUnknownCard } from '../../domain/topup.ts';
import { type CardRow, presentCard } from '../../resources/card.ts';
import { presentTopUp, TopUpRequest, type TopUpRow } from '../../resources/topup.ts';
import { lockCard } from '../card-status/lock-card.ts';
import type { CommandContext } from '../command-context.ts';
import type { Outcome } from '../idempotency/outcome.ts';
import type { FundingKind } from './funding.ts';
import { type ClaimedTerms, type FundingTerms, termsReader } from './terms.ts';
import { type FundingTable, fundingWriter } from './write-funding.ts';

/** The request to the network. Its token is the top-up's id. */
export interface AskedTopUp {
  token: string;
  networkCardId: string;
  amountCents: number;
}

/** What a pending top-up asks the network for, and what an operator has decided meanwhile; null if it is not pending. */
export async function readPendingTopUp(
  { orm }: CommandContext,
  claimId: string,
): Promise<{ asked: AskedTopUp; decision: TopUpDecision | null } | null> {
  const [row] = await pendingTopUp(orm.em.fork(), { claimId });
  return row === undefined
    ? null
    : { asked: askedFor(row, row.asked?.networkCardId ?? row.network_card_id), decision: row.binding };
}

const pendingTopUp = readStatement((db, { claimId }: { claimId: string }) =>
  db
    .selectFrom('topup as t')
    .innerJoin('card as c', 'c.id', 't.card_id')
    .select([
      ...(['t.id', 't.amount_cents', 't.asked', 'c.network_card_id'] as const),
      sql<TopUpDecision | null>`CASE WHEN NOT t.decision ? 'refused' THEN t.decision END`.as('binding'),
    ])
    .where('t.claim_id', '=', claimId)
    .where('t.status', '=', 'pending'),
);

function askedFor(topUp: Pick<TopUpRow, 'id' | 'amount_cents'>, networkCardId: string | null): AskedTopUp {
  if (networkCardId === null) throw new Error(`${topUp.id} is for a card that the network does not know`);
  return { token: topUp.id, networkCardId, amountCents: Number(topUp.amount_cents) };
}

/** The state that a top-up is decided on, in addition to the card's row. */
interface TopUpTerms extends FundingTerms {
  request: TopUpRequest;
  /** The card's balance. */
  cardCents: number;
  /** What its pending top-ups would add. */
  arrivingCents: bigint;
}

/**
 * The pending top-up on these terms. Everything that can be refused without the ledger is refused here, so limits come before
 * the balance (decisions.md, "422 limit_exceeded").
 * @throws ApiError `validation_failed` (amount and fees, or the card's balance, past the largest integer), `invalid_state`,
 * `limit_exceeded`.
 */
export function draftTopUp(topUpId: string, terms: TopUpTerms, card: CardRow): TopUpRow {
  const { amount } = terms.request;
  const { fees } = quoteFunding(terms.feePlan, 'card_topup', amount);
  if (BigInt(terms.cardCents + amount) + terms.arrivingCents > BigInt(MAX_AMOUNT_CENTS)) {
    throw ApiError.ofField(
      'amount',
      `amount would take the card's balance above the maximum of ${MAX_AMOUNT_CENTS} cents`,
    );
  }
  if (card.status !== 'active') throw topUpNotPossible(card.status);
  if (card.mode === 'live' && card.network_card_id === null) throw topUpOfUnknownCard();
  checkLimits(terms.limits, terms.usage, { amountCents: amount, newCards: 0 });
  return {
    id: topUpId,
    partner_id: terms.partnerId,
    mode: terms.mode,
    card_id: card.id,
    status: 'pending',
    failure_code: null,
    amount_cents: String(amount),
    fees,
    card_balance_cents: null,
    overdue_since: null,
    created_at: timeOf(topUpId).toISOString(),
    completed_at: null,
  };
}

/** The row of a top-up whose money is on the card. @param cardCents the card's balance before */
export const loadedTopUp = (topUp: TopUpRow, cardCents: number): TopUpRow => ({
  ...topUp,
  status: 'succeeded',
  card_balance_cents: String(cardCents + Number(topUp.amount_cents)),
  completed_at: new Date().toISOString(),
});

/** How a top-up ended. @param topUp and card the rows as they will be written */
export function topUpOutcome(topUp: TopUpRow, card: CardRow): Outcome {
  const balanceCents = Number(topUp.card_balance_cents);
  const topup = presentTopUp(topUp, balanceCents);
  return {
    type: topUp.status === 'succeeded' ? 'topup.succeeded' : 'topup.failed',
    mode: topUp.mode,
    cardId: card.id,
    data: { topup, card: presentCard(card, balanceCents) },
    response: { status: 201, resource: topup },
  };
}

const TABLE: FundingTable<TopUpRow> = {
  newCards: 0,
  funding: (topUp) => ({
    operationId: `topup/${topUp.id}`,
    partnerId: topUp.partner_id,
    mode: topUp.mode,
    cardId: topUp.card_id,
    load: { step: 'topup', code: 'topup' },
    amountCents: Number(topUp.amount_cents),
    fees: topUp.fees,
  }),
  insert: (db, topUp, claimId) =>
    db
      .insertInto('topup')
      .values({
        id: topUp.id,
        partner_id: topUp.partner_id,
        mode: topUp.mode,
        card_id: topUp.card_id,
        claim_id: claimId,
        status: topUp.status,
        amount_cents: topUp.amount_cents,
        fees: sql<Fee[]>`${topUp.fees}::jsonb`,
        asked: sql<{ networkCardId: string } | null>`${topUp.asked}::jsonb`,
        card_balance_cents: topUp.card_balance_cents,
        created_at: topUp.created_at,
        completed_at: topUp.completed_at,
      })
      .returning(['partner_id', 'mode', 'amount_cents as loaded_cents', 'counted_on as today']),
  end: (db, topUp) =>
    db
      .updateTable('topup')
      .set({
        status: topUp.status,
        failure_code: topUp.failure_code,
        card_balance_cents: topUp.card_balance_cents,
        completed_at: topUp.completed_at,
        claim_id: null,
        overdue_since: null,
        not_recorded: null,
      })
      .where('id', '=', topUp.id)
      .where('status', '=', 'pending')
      .returning(['partner_id', 'mode']),
};

/** A top-up: it loads money on an existing card. */
export const TOPUP: FundingKind<
  TopUpRow,
  AskedTopUp,
  object,
  TopUpFailureCode,
  null,
  ClaimedTerms<TopUpRequest>
> = {
  ...TABLE,
  table: 'topup',
  pendingStatus: 'pending',
  writer: fundingWriter(TABLE),
  lockTerms: termsReader(TopUpRequest, null),
  async draft(tx, _, terms) {
    const { resourceId: topUpId } = terms;
    if (terms.cardId === null) throw new Error(`the claim of ${topUpId} names no card`);
    const card = await lockCard(tx, terms.cardId);
    if (card === undefined) throw new Error(`the card ${terms.cardId} of a top-up is gone`);
    const row = draftTopUp(topUpId, terms, card);
    const asked = askedFor(row, card.network_card_id);
    return { row, asked, kept: { networkCardId: asked.networkCardId } };
  },
  async lock(tx, topUpId) {
    const [found] = await lockWithBalance(tx, { topUpId });
    if (found === undefined) return null;
    const { card_cents: cardCents, ...row } = found;
    return { row, cardCents: Number(cardCents) };
  },
  loaded: ({ row, cardCents }) => loadedTopUp(row, cardCents),
  failed: ({ row, cardCents }, failure) => ({
    ...row,
    status: 'failed',
    failure_code: failure,
    card_balance_cents: String(cardCents),
    completed_at: new Date().toISOString(),
  }),
  loadedByHand: async () => ({}),
  outcome: topUpOutcome,
  present: presentTopUp,
};

// Every change of a card's balance holds the card's lock, and the caller has taken it before this statement begins.
const lockWithBalance = writeStatement((db, { topUpId }: { topUpId: string }) =>
  db
    .selectFrom('topup as t')
    .select(of('t', TOPUP_COLUMNS))
    .select((t) =>
      t
        .selectFrom('ledger.account as a')
        .select(({ fn, val }) => fn.coalesce('a.posted', val('0')).as('posted'))
        .whereRef('a.card_id', '=', 't.card_id')
        .as('card_cents'),
    )
    .where('t.id', '=', topUpId)
    .forNoKeyUpdate('t'),
);
