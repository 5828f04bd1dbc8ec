import { sql } from 'kysely';
import { heldClock } from '../accounts/clock.ts';
import { appliedControls, type ControlsColumns } from '../cards/applied-controls.ts';
import { presentCard } from '../cards/resource.ts';
import type { AccountClock } from '../domain/account-clock.ts';
import { ApiError } from '../domain/api-error.ts';
import { DEFAULT_FEE_PLAN, FeePlan } from '../domain/fees.ts';
import { MAX_AMOUNT_CENTS } from '../domain/money.ts';
import { applyPostings } from '../ledger/apply-posting.ts';
import { LedgerRejected } from '../ledger/ledger-error.ts';
import { encodePosting } from '../ledger/posting.ts';
import { newId, readIdTime } from '../platform/crypto/new-id.ts';
import { CARD_COLUMNS, of, TRANSACTION_COLUMNS } from '../platform/db/columns.ts';
import { columnList, type Transactor, writeStatement } from '../platform/db/sql.ts';
import { insertEvents, newEvent } from '../requests/event.ts';
import {
  decideSettlements,
  type NewTransaction,
  type RefundedTransaction,
  type Settled,
  type Settlement,
  type SettlementDecision,
  type SettlementOutcome,
  type SettlementTerms,
  settlementPosting,
} from './decide-settlements.ts';
import { presentTransaction, type TransactionRow } from './transaction-resource.ts';

/**
 * The one place that settles transactions (docs/partners/transactions.md): simulated ones and those that the
 * network reports, of any accounts and modes, decided in order, in the caller's transaction. It takes four
 * statements, however many settlements there are: lock, read, the ledger's call, insert. A settlement that is
 * repeated returns the same transaction.
 * @param longestLockWaitMs how long to wait for a lock before PostgreSQL's error; null for the session's
 * limit
 * @returns the outcome of each, in order; a refusal (`card_not_found`, `invalid_state`,
 * `idempotency_conflict`, `validation_failed`) does not affect the others
 * @throws if a balance would leave the safe integers: ApiError `validation_failed` for a settlement that came
 *   alone, LedgerRejected for several, which were decided as if it did not: settle each alone
 */
export async function settleTransactions(
  tx: Transactor,
  settlements: readonly Settlement[],
  longestLockWaitMs: number | null = null,
): Promise<SettlementOutcome[]> {
  const { terms, at } = await lockTerms(tx, settlements, longestLockWaitMs);
  const decisions = decideSettlements(settlements, terms, at);
  const made = decisions.filter((decision) => 'card' in decision);
  try {
    await moveMoney(tx, made);
  } catch (error) {
    const isOutOfRange = error instanceof LedgerRejected && error.reason === 'balance_out_of_range';
    if (!isOutOfRange || settlements.length > 1) throw error;
    throw ApiError.ofField(
      'amount',
      `amount would take the balance more than ${MAX_AMOUNT_CENTS} cents above or below zero`,
    );
  }
  await insertTransactions(tx, made);
  return decisions.map(toOutcome);
}

/** {@link settleTransactions} for one settlement. @throws ApiError what would be its outcome: roll back. */
export async function settleTransaction(tx: Transactor, settlement: Settlement): Promise<Settled> {
  const [outcome] = await settleTransactions(tx, [settlement]);
  if (outcome === undefined || outcome instanceof ApiError) throw outcome;
  return outcome;
}

function toOutcome(decision: SettlementDecision): SettlementOutcome {
  if (decision instanceof ApiError) return decision;
  return 'known' in decision
    ? { transaction: presentTransaction(decision.known), replayed: true }
    : { transaction: presentTransaction(decision.row), replayed: false };
}

/**
 * Locks the cards, in the order of their ids: whoever changes a card's status or balance locks it first. Then
 * reads, in a later statement, since a wait does not refresh its own statement's snapshot.
 */
async function lockTerms(
  tx: Transactor,
  settlements: readonly Settlement[],
  longestLockWaitMs: number | null,
): Promise<{ terms: SettlementTerms[]; at: Date }> {
  const cardIds = [...new Set(settlements.map((settlement) => settlement.cardId))];
  const testPartnerIds = settlements.filter(({ mode }) => mode === 'test').map(({ partnerId }) => partnerId);
  const cards = await lockCards(tx, {
    cardIds,
    testPartnerIds: [...new Set(testPartnerIds)],
    longestLockWaitMs,
  });
  const byId = new Map(cards.map((card) => [card.id, card]));
  // Under the locks: a settlement counts in the interval of a spending limit in which it is decided.
  const at = new Date();
  const rows = await readTerms(tx, {
    cardIds: settlements.map((settlement) => settlement.cardId),
    partnerIds: settlements.map((settlement) => settlement.partnerId),
    modes: settlements.map((settlement) => settlement.mode),
    networkTransactionIds: settlements.map((settlement) => settlement.networkTransactionId),
    refundedIds: settlements.map(({ refundedTransactionId }) => refundedTransactionId ?? ''),
    paymentIds: settlements.map(
      ({ type, networkPaymentId }) => (type === 'refund' && networkPaymentId) || '',
    ),
    at: at.toISOString(),
  });
  const terms = settlements.map(({ cardId, partnerId, mode }, index) => {
    const {
      card_posted,
      card_held,
      arriving,
      fee_plan,
      account_controls,
      spending,
      clock,
      refunded,
      ...known
    } = rows[index] as TermsRow;
    const card = byId.get(cardId);
    return {
      card: card?.partner_id === partnerId && card.mode === mode ? card : undefined,
      balance: { balanceCents: Number(card_posted ?? 0), heldCents: Number(card_held ?? 0) },
      arrivingCents: BigInt(arriving),
      feePlan: fee_plan === null ? DEFAULT_FEE_PLAN : FeePlan.parse(fee_plan),
      controls: appliedControls(card?.spending_controls ?? null, { account_controls, spending }),
      clock,
      known: known.id === null ? null : (known as TransactionRow),
      refunded,
    };
  });
  return { terms, at };
}

interface CardsToLock {
  cardIds: string[];
  /** The accounts whose test mode is among them. */
  testPartnerIds: string[];
  longestLockWaitMs: number | null;
}

/**
 * An array of unknown length: PostgreSQL plans a statement anew for each array whose elements it can count.
 */
const list = (values: readonly string[]) => sql<string[]>`(SELECT ${values}::text[])`;

// It sets the transaction's lock_timeout, and holds the accounts' clocks, before it locks the first row, so
// that this takes no round trip of its own.
const lockCards = writeStatement(
  (db, { cardIds, testPartnerIds, longestLockWaitMs }: CardsToLock) =>
    db
      .selectFrom('card as c')
      .select(of('c', CARD_COLUMNS))
      .where('c.id', '=', sql<string>`ANY(${list(cardIds)}::text[])`)
      .where(
        sql<boolean>`(SELECT set_config('lock_timeout',
          coalesce(${longestLockWaitMs}, current_setting('lock_timeout')), true)) IS NOT NULL`,
      )
      .where(
        sql<boolean>`(SELECT count(lock_test_clock(held.id)) FROM unnest(${list(testPartnerIds)}) held (id)) IS NOT NULL`,
      )
      .orderBy('c.id')
      .forNoKeyUpdate(),
  { acrossTenants: 'network' },
);

interface TermsAsked {
  cardIds: string[];
  partnerIds: string[];
  modes: string[];
  networkTransactionIds: string[];
  /** What each refund names; '' if it names nothing, or is none. */
  refundedIds: string[];
  paymentIds: string[];
  at: string;
}

type TermsRow = {
  card_posted: string | null;
  card_held: string | null;
  arriving: string;
  fee_plan: unknown;
  clock: AccountClock;
  refunded: RefundedTransaction | null;
} & ControlsColumns &
  (TransactionRow | { [Column in keyof TransactionRow]: null });

// Written out because it joins a list of columns by place. Each LIMIT makes it look up row by row in an
// index, whatever the sizes of the tables were when it was planned. It writes counters of spending, if a
// card's limits lack them.
const readTerms = writeStatement(
  (_, asked: TermsAsked) => sql<TermsRow>`
    SELECT a.posted AS card_posted, a.held AS card_held, p.fee_plan, p.spending_controls AS account_controls, t.*, r.refunded,
      CASE WHEN num_nonnulls(k.spending_controls, p.spending_controls) > 0
        THEN count_spending(k.card, p.spending_controls, account_time(s.partner_id, s.mode, ${asked.at})) END AS spending,
      ${heldClock(sql.ref('s.partner_id'), sql.ref('s.mode'))} AS clock,
      coalesce((SELECT sum(o.amount_cents) FROM card_transfer o
        WHERE o.card_id = s.card_id AND o.direction = 'topup' AND o.status = 'pending'), 0) AS arriving
    FROM unnest(${list(asked.cardIds)}, ${list(asked.partnerIds)}, ${list(asked.modes)},
      ${list(asked.networkTransactionIds)}, ${list(asked.refundedIds)}, ${list(asked.paymentIds)})
      WITH ORDINALITY s (card_id, partner_id, mode, network_transaction_id, refunded_id, payment_id, place)
    LEFT JOIN LATERAL (SELECT posted, held FROM ledger.account WHERE card_id = s.card_id LIMIT 1) a ON true
    LEFT JOIN LATERAL (SELECT fee_plan, spending_controls FROM partner WHERE id = s.partner_id LIMIT 1) p ON true
    LEFT JOIN LATERAL (SELECT c AS card, c.spending_controls FROM card c WHERE c.id = s.card_id LIMIT 1) k ON true
    LEFT JOIN LATERAL (
      SELECT ${columnList('card_transaction', TRANSACTION_COLUMNS)} FROM card_transaction
      WHERE mode = s.mode AND network_transaction_id = s.network_transaction_id LIMIT 1
    ) t ON true
    LEFT JOIN LATERAL (
      SELECT jsonb_build_object('id', f.id, 'type', f.type, 'amountCents', f.amount_cents,
        'givenBackCents', (SELECT coalesce(sum(b.amount_cents), 0) FROM card_transaction b
          WHERE b.refunded_transaction_id = f.id AND b.partner_id = f.partner_id AND b.mode = f.mode),
        'merchant', jsonb_build_object('name', f.merchant_name, 'category_code', f.merchant_category_code,
          'city', f.merchant_city, 'country', f.merchant_country)) AS refunded
      FROM card_transaction f
      WHERE f.card_id = s.card_id AND f.partner_id = s.partner_id AND f.mode = s.mode AND f.id = CASE
        WHEN s.refunded_id <> '' THEN s.refunded_id
        WHEN s.payment_id <> '' THEN (SELECT min(o.id) FROM card_transaction o
          WHERE o.card_id = s.card_id AND o.network_payment_id = s.payment_id AND o.type = 'purchase' HAVING count(*) = 1)
      END
      LIMIT 1
    ) r ON true
    ORDER BY s.place`,
  { acrossTenants: 'network' },
);

async function moveMoney(tx: Transactor, made: readonly NewTransaction[]): Promise<void> {
  const postings = made.map(({ row }) => settlementPosting(row)).filter((posting) => posting !== null);
  if (postings.length === 0) return;
  const answers = await applyPostings(tx, postings.map(encodePosting));
  for (const [index, answer] of answers.entries()) {
    if (answer instanceof Error) throw answer;
    // Everyone who moves a card's money locks its row, and other debits may overdraw, so there was enough.
    if (answer.outcome !== 'applied') throw new Error(`a settlement can not be ${answer.outcome}`);
    // A debit that may overdraw leaves room for what is held, so that posting a hold is never refused.
    if (answer.prepaid !== null && answer.prepaid.availableCents < -MAX_AMOUNT_CENTS) {
      throw new LedgerRejected(postings[index]?.operationId ?? '', 'balance_out_of_range');
    }
  }
}

/** Inserts transactions, each with its event, which shows the card as it is right after the transaction. */
async function insertTransactions(tx: Transactor, made: readonly NewTransaction[]): Promise<void> {
  if (made.length === 0) return;
  // Events are listed by their ids: those of one moment in the order of their transactions, and each at its
  // time.
  const ids = made.map(({ row }) => newId('evt', readIdTime(row.id))).sort();
  const events = made.map(({ row, card, heldCents, clock }, index) => {
    const { partner_id, mode, card_id: cardId } = row;
    const transaction = presentTransaction(row);
    const balanceCents = transaction.card_balance_after;
    const data = { transaction, card: presentCard(card, { balanceCents, heldCents }) };
    return {
      ...newEvent({ type: 'card.transaction.created', mode, cardId, data, clock }, ids[index]),
      partner_id,
    };
  });
  await insertRows(tx, {
    transactions: JSON.stringify(made.map(({ row }) => row)),
    events: JSON.stringify(events),
  });
}

// Written out because it inserts into two tables, any number of rows each, which arrive as one JSON array for
// each.
const insertRows = writeStatement(
  (_, rows: { transactions: string; events: string }) => {
    const columns = sql.join(TRANSACTION_COLUMNS.map((column) => sql.ref(column)));
    return sql`
    WITH inserted AS (
      INSERT INTO card_transaction (${columns})
      SELECT ${columns} FROM json_populate_recordset(NULL::card_transaction, ${rows.transactions})
    )
    ${insertEvents(rows.events)}`;
  },
  { acrossTenants: 'network' },
);
