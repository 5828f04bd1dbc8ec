import { type RawBuilder, sql } from 'kysely';
import { accountToday } from '../../accounts/clock.ts';
import { checkLimits } from '../../accounts/limits-rules.ts';
import { accountTime } from '../../domain/account-clock.ts';
import { ApiError } from '../../domain/api-error.ts';
import type { TopUpDecision } from '../../domain/decision.ts';
import { type Fee, quoteFunding } from '../../domain/fees.ts';
import { isId } from '../../domain/ids.ts';
import { MAX_AMOUNT_CENTS } from '../../domain/money.ts';
import { statementWithPosting } from '../../ledger/apply-posting.ts';
import { refuseTooLarge } from '../../ledger/refuse-too-large.ts';
import { readIdTime } from '../../platform/crypto/new-id.ts';
import type { TOPUP_COLUMNS } from '../../platform/db/columns.ts';
import { readStatement, type Writes, writeStatement } from '../../platform/db/sql.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { type KeyedRequest, lockUsageAndClaim } from '../../requests/claim.ts';
import type { CommandContext } from '../../requests/command-context.ts';
import {
  type KeyedOutcomeValues,
  outcomeResponse,
  requestOutcome,
  writeRequestOutcome,
} from '../../requests/outcome.ts';
import { type KeyedResponse, requireStored, respondOnce } from '../../requests/respond-once.ts';
import { openRequest, type StoredResponse, storeError } from '../../requests/response.ts';
import { fundingPosting, requireFunds } from '../funding-posting.ts';
import { lockCard } from '../lock-card.ts';
import type { CardRow } from '../resource.ts';
import { type ClaimedTermsColumns, type FundingTerms, fundingTerms, lockTestTerms } from '../terms.ts';
import {
  type BoundTopUp,
  boundTopUp,
  loadedTopUp,
  lockPendingTopUp,
  topUpFunding,
  topUpOutcome,
} from './end-top-up.ts';
import { TopUpRequest, type TopUpRow } from './top-up-resource.ts';
import { topUpNotPossible, unknownCardTopUp } from './top-up-rules.ts';

// A top-up loads money on an existing card. In live mode, the money is held while the card network decides, and end-topup.ts
// has what follows. In test mode, all of it is one transaction.

/** The request to the network. Its token is the top-up's id. */
export interface AskedTopUp {
  token: string;
  networkCardId: string;
  amountCents: number;
}

/** What a pending top-up's row keeps of the request, so that a repeated one is the same whatever has changed. */
interface KeptTopUp {
  networkCardId: string;
}

/**
 * `held`: the network decides next; `asked` is the request to it, or null if an earlier run made the hold. `answered`: the
 * top-up is over and its claim has a response, which is included if this run stored it.
 */
type BegunTopUp =
  | { state: 'held'; asked: AskedTopUp | null }
  | { state: 'answered'; response: StoredResponse | null };

/**
 * Begins a top-up in live mode: the pending row and its hold. A refusal becomes the claim's response and leaves nothing else
 * behind. If it runs again for the same claim, it changes nothing and returns the same.
 */
export async function beginTopUp({ orm, ring }: CommandContext, claimId: string): Promise<BegunTopUp> {
  try {
    return await transaction(orm, async (tx) => {
      const [claimed] = await lockClaimedTerms(tx, { claimId });
      // No workflow works for a test-mode claim. A process of an earlier release left this one.
      if (claimed === undefined || claimed.mode === 'test') return { state: 'answered', response: null };
      if (claimed.is_pending) return { state: 'held', asked: null };
      if (claimed.answered) return { state: 'answered', response: null };
      const { resource_id: topUpId, card_id: cardId } = claimed;
      if (cardId === null) throw new Error(`the claim of ${topUpId} names no card`);
      if (!isId('topup', topUpId)) throw new Error(`${topUpId} is not a top-up`);
      const card = await lockCard(tx, { partnerId: claimed.partner_id, mode: claimed.mode }, cardId);
      if (card === undefined) throw new Error(`the card ${cardId} of a top-up is gone`);
      const topUp = draftTopUp(topUpId, card, {
        ...fundingTerms(claimed.partner_id, claimed.mode, claimed),
        request: TopUpRequest.parse(openRequest(ring, claimId, claimed.request)),
        cardCents: Number(claimed.card_cents),
        arrivingCents: BigInt(claimed.arriving_cents),
      });
      const asked = askedFor(topUp, card.network_card_id);
      const kept = JSON.stringify({ networkCardId: asked.networkCardId } satisfies KeptTopUp);
      const values = { ...boundTopUp(topUp), claimId, asked: kept };
      const funding = topUpFunding(topUp);
      const held = await holdTopUp(tx, fundingPosting(funding, 'pending'), values).catch(refuseTooLarge);
      await requireFunds(tx, funding, held.moved);
      return { state: 'held', asked };
    });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return transaction(orm, async (tx) => {
      if ((await lockUsageAndClaim(tx, claimId)) === null) return { state: 'answered', response: null };
      // Another run of the same claim may have got further in the meantime, and its result stands.
      if ((await lockPendingTopUp(tx, claimId)) !== null) return { state: 'held', asked: null };
      return { state: 'answered', response: await storeError({ tx, ring }, claimId, error) };
    });
  }
}

const lockClaimedTerms = writeStatement(
  (_, { claimId }: { claimId: string }) => sql<ClaimedTermsColumns>`
    SELECT f.* FROM lock_funding_terms(${claimId}) f`,
);

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
 * the balance (docs/partners/money-fees-and-limits.md).
 * @throws ApiError `validation_failed` (amount and fees, or the card's balance, past the largest integer), `invalid_state`,
 * `limit_exceeded`.
 */
function draftTopUp(topUpId: string, card: CardRow, terms: TopUpTerms): TopUpRow {
  const { amount } = terms.request;
  const { fees } = quoteFunding(terms.feePlan, 'card_topup', amount);
  if (BigInt(terms.cardCents + amount) + terms.arrivingCents > BigInt(MAX_AMOUNT_CENTS)) {
    throw ApiError.ofField(
      'amount',
      `amount would take the card's balance above the maximum of ${MAX_AMOUNT_CENTS} cents`,
    );
  }
  if (card.status !== 'active') throw topUpNotPossible(card.status);
  if (card.mode === 'live' && card.network_card_id === null) throw unknownCardTopUp();
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
    created_at: accountTime(terms.clock, readIdTime(topUpId)).toISOString(),
    completed_at: null,
  };
}

function askedFor(topUp: Pick<TopUpRow, 'id' | 'amount_cents'>, networkCardId: string | null): AskedTopUp {
  if (networkCardId === null) throw new Error(`${topUp.id} is for a card that the network does not know`);
  return { token: topUp.id, networkCardId, amountCents: Number(topUp.amount_cents) };
}

/** A column of TOPUP_COLUMNS that is missing here is a type error. */
const newTopUp = (topUp: BoundTopUp) =>
  ({
    id: topUp.id,
    partner_id: topUp.partner_id,
    mode: topUp.mode,
    card_id: topUp.card_id,
    status: topUp.status,
    failure_code: topUp.failure_code,
    amount_cents: topUp.amount_cents,
    fees: sql<Fee[]>`${topUp.fees}::jsonb`,
    card_balance_cents: topUp.card_balance_cents,
    overdue_since: topUp.overdue_since,
    created_at: topUp.created_at,
    completed_at: topUp.completed_at,
  }) satisfies Record<(typeof TOPUP_COLUMNS)[number], unknown>;

/** Inserts a top-up and returns what is counted of it. */
const insertTopUp = (
  db: Writes,
  topUp: BoundTopUp,
  pending: { claim_id: string; asked: RawBuilder<KeptTopUp> } | null,
) =>
  db
    .insertInto('topup')
    .values({ ...newTopUp(topUp), ...pending, counted_on: accountToday(topUp.partner_id, topUp.mode) })
    .returning(['partner_id', 'mode', 'amount_cents', 'counted_on']);

/** Counts the inserted top-up towards its account's limits. */
const COUNT_TOPUP = sql`
  UPDATE account_usage u SET loaded_on = greatest(u.loaded_on, done.counted_on),
    loaded_cents = CASE WHEN u.loaded_on >= done.counted_on THEN u.loaded_cents ELSE 0 END + done.amount_cents
  FROM done WHERE u.partner_id = done.partner_id AND u.mode = done.mode`;

const holdTopUp = statementWithPosting(
  (db, topUp: BoundTopUp & { claimId: string; asked: string }, ledger) => sql`
    WITH done AS (${insertTopUp(db, topUp, { claim_id: topUp.claimId, asked: sql<KeptTopUp>`${topUp.asked}::jsonb` })}), counted AS (${COUNT_TOPUP})
    SELECT ${ledger.answer} FROM ${ledger.call}`,
);

/** What a pending top-up asks the network for, and what an operator has decided meanwhile; null if it is not pending. */
export async function readPendingTopUp(
  { orm }: CommandContext,
  claimId: string,
): Promise<{ asked: AskedTopUp; decision: TopUpDecision | null } | null> {
  const [row] = await pendingTopUp(orm.em.fork(), { claimId });
  if (row === undefined) return null;
  // A process of the last release kept nothing.
  const networkCardId = row.asked?.networkCardId ?? row.network_card_id;
  return { asked: askedFor(row, networkCardId), decision: row.binding };
}

const pendingTopUp = readStatement(
  (db, { claimId }: { claimId: string }) =>
    db
      .selectFrom('topup as t')
      .innerJoin('card as c', 'c.id', 't.card_id')
      .select(['t.id', 't.amount_cents', 't.asked', 'c.network_card_id'])
      .select(
        sql<TopUpDecision | null>`CASE WHEN NOT t.decision ? 'refused' THEN t.decision END`.as('binding'),
      )
      .where('t.claim_id', '=', claimId)
      .where('t.status', '=', 'pending'),
  { acrossTenants: 'id' },
);

/**
 * Tops a test card up in one transaction: test mode's network always says yes, so there is nothing to wait for.
 * @throws ApiError `card_not_found`, `idempotency_conflict`, `validation_failed` (a sum past the largest integer).
 * Other refusals are returned as the stored response.
 */
export function topUpInTestMode(
  context: CommandContext,
  request: KeyedRequest<'top_up_card'>,
  asked: TopUpRequest,
): Promise<KeyedResponse> {
  const { ring } = context;
  return respondOnce(context, request, async (tx) => {
    const locked = await lockTestTerms({ tx, ring }, request, { counts: true });
    if ('replayed' in locked) return locked;
    const { terms, card, balance } = locked;
    const draft = draftTopUp(request.resourceId, card, {
      ...terms,
      request: asked,
      cardCents: balance.balanceCents,
      arrivingCents: 0n,
    });
    const topUp = loadedTopUp(draft, balance, accountTime(terms.clock));
    const outcome = topUpOutcome(topUp, card, balance.heldCents);
    const values = { ...boundTopUp(topUp), ...requestOutcome(ring, request, outcome, terms.clock) };
    const funding = topUpFunding(topUp);
    const funded = await fundTopUp(tx, fundingPosting(funding, 'single'), values).catch(refuseTooLarge);
    await requireFunds(tx, funding, funded.moved);
    requireStored(funded.wrote.is_stored);
    return { replayed: false, response: outcomeResponse(outcome) };
  });
}

const fundTopUp = statementWithPosting((db, topUp: BoundTopUp & KeyedOutcomeValues, ledger) => {
  const { ctes, isStored } = writeRequestOutcome(topUp, true);
  return sql<{ is_stored: boolean }>`
    WITH done AS (${insertTopUp(db, topUp, null)}), counted AS (${COUNT_TOPUP}), ${ctes}
    SELECT ${ledger.answer}, ${isStored} AS is_stored FROM ${ledger.call}`;
});
