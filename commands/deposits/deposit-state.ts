import type { EntityManager } from '@mikro-orm/postgresql';
import { newId, timeOf } from '../../crypto/new-id.ts';
import { depositColumns, paymentsOf } from '../../db/deposit-columns.ts';
import { query } from '../../db/sql.ts';
import { MICRO_USDT_PER_CENT, type PaymentStatus, statusOfPaid } from '../../domain/deposit.ts';
import type { EventType } from '../../domain/event.ts';
import type { LedgerOperation } from '../../ledger/operation.ts';
import { type DepositRow, type PaymentRow, presentDeposit } from '../../resources/deposit.ts';

/** Payments of one deposit that are judged in one transaction; only someone who sends dust on purpose makes more. */
const MOST_FOUND = 500;

/** A deposit that the transaction holds, with what has arrived for it. */
export interface LockedDeposit extends DepositRow {
  /** The first of them, to be shown. */
  payments: PaymentRow[];
  review_since: string | Date | null;
  version: number;
  /** Those not judged yet: the first of them, in the chain's order. */
  found: PaymentRow[];
  /** How those that were judged stand: each status that occurs, once. */
  statuses: Exclude<PaymentStatus, 'found'>[];
  /** What was judged and not returned, all together: decimal digits. */
  kept_micro_usdt: string;
  /** Whether a payment of the exact amount was credited. */
  is_paid: boolean;
}

/**
 * Locks deposits until the transaction ends, in the order of their ids, and reads them with what has arrived. The scan goes
 * on recording payments meanwhile: it never waits for this lock.
 * @param locked what to do about those that another transaction holds
 * @param longestLockWaitMs for all of the transaction's locks from then on; null: the session's own
 */
export async function lockDeposits(
  tx: EntityManager,
  depositIds: readonly string[],
  locked: 'wait' | 'skip',
  longestLockWaitMs: number | null = null,
): Promise<LockedDeposit[]> {
  const held = await query<{ id: string }>(tx, `${LOCK} ${locked === 'skip' ? 'SKIP LOCKED' : ''}`, [
    depositIds,
    longestLockWaitMs,
  ]);
  // A statement of its own: what the wait let in is not in the snapshot of the one that waited.
  return held.length === 0 ? [] : query<LockedDeposit>(tx, READ, [held.map(({ id }) => id)]);
}

/**
 * The ledger's side of a credit.
 * @param cause what makes it this one: `<network>/<txHash>/<logIndex>` of the payment, say
 */
export function creditOperation(
  { id, partner_id: partnerId, mode }: DepositRow,
  cause: string,
  amountCents: number,
): LedgerOperation {
  const flow = { code: 'fund_usdt', debit: 'crypto_clearing', credit: 'prepaid' } as const;
  return {
    // Balance transactions read their source from its end.
    operationId: `deposit/${cause}/${id}`,
    partnerId,
    mode,
    transfers: [{ step: 'credit', phase: 'single', amountCents, ...flow }],
  };
}

/** What has become of a deposit's payments, which are written already. */
export interface DepositChange {
  deposit: LockedDeposit;
  /** How its payments stand that are judged; each status once is enough. */
  statuses: readonly Exclude<PaymentStatus, 'found'>[];
  /** What the ledger has credited for it in this transaction. */
  newlyCreditedCents: number;
}

/**
 * Writes the state of deposits that follows from their payments, each with its `deposit.confirmed` where something was
 * credited, in two statements however many they are. The caller holds them, and announces afterwards.
 */
export async function writeDeposits(tx: EntityManager, changes: readonly DepositChange[]): Promise<void> {
  const now = new Date();
  const written = changes.map((change) => ({ ...change, row: rowAfter(change, now) }));
  await query(tx, WRITE, [JSON.stringify(written.map(({ row }) => row))]);
  const events = written
    .filter(({ newlyCreditedCents }) => newlyCreditedCents > 0)
    .map(({ row }) => confirmedEvent(row));
  if (events.length > 0) await query(tx, TELL, [JSON.stringify(events), CONFIRMED]);
}

function rowAfter({ deposit, statuses, newlyCreditedCents }: DepositChange, now: Date): LockedDeposit {
  const status = statusOfPaid(statuses.map((one) => ({ status: one })));
  const creditedCents = BigInt(deposit.credited_cents) + BigInt(newlyCreditedCents);
  return {
    ...deposit,
    status,
    credited_cents: creditedCents.toString(),
    confirmed_at: deposit.confirmed_at ?? (creditedCents > 0n ? now.toISOString() : null),
    review_since: status === 'needs_review' ? (deposit.review_since ?? now) : null,
  };
}

const CONFIRMED: EventType = 'deposit.confirmed';

function confirmedEvent(row: LockedDeposit) {
  const id = newId('evt');
  const created = timeOf(id).toISOString();
  const { partner_id, mode } = row;
  const body = JSON.stringify({ id, type: CONFIRMED, created, mode, data: { deposit: presentDeposit(row) } });
  return { id, partner_id, mode, body, created_at: created };
}

const LOCK = `
  WITH patience AS MATERIALIZED (
    SELECT set_config('lock_timeout', coalesce($2::integer || 'ms', current_setting('lock_timeout')), true)
  )
  SELECT d.id FROM patience, deposit d WHERE d.id = ANY ($1) ORDER BY d.id FOR NO KEY UPDATE OF d`;

const READ = `
  SELECT ${depositColumns('d')}, d.review_since, d.version,
    ${paymentsOf('d')} AS payments,
    ${paymentsOf('d', { which: "p.status = 'found'", limit: MOST_FOUND })} AS found,
    -- Of the two called received_micro_usdt the driver gives the last, this sum.
    arrived.*
  FROM deposit d CROSS JOIN LATERAL (
    SELECT coalesce(sum(p.value_micro_usdt), 0)::text AS received_micro_usdt,
      coalesce(json_agg(DISTINCT p.status) FILTER (WHERE p.status <> 'found'), '[]') AS statuses,
      coalesce(sum(p.value_micro_usdt) FILTER (WHERE p.status IN ('credited', 'in_review')), 0)::text AS kept_micro_usdt,
      coalesce(bool_or(p.status = 'credited' AND p.value_micro_usdt = d.amount_cents * ${MICRO_USDT_PER_CENT}::numeric), false)
        AS is_paid
    FROM deposit_payment p WHERE p.deposit_id = d.id) arrived
  WHERE d.id = ANY ($1) ORDER BY d.id`;

const WRITE = `
  UPDATE deposit d SET status = w.status, received_micro_usdt = w.received_micro_usdt, credited_cents = w.credited_cents,
    seen_block_number = NULL, confirmed_at = w.confirmed_at, review_since = w.review_since, version = d.version + 1,
    changed_at = now()
  FROM json_to_recordset($1) AS w (id text, status text, received_micro_usdt numeric, credited_cents bigint,
    confirmed_at timestamptz, review_since timestamptz)
  WHERE d.id = w.id`;

const TELL = `
  INSERT INTO event (id, partner_id, mode, type, body, created_at)
  SELECT id, partner_id, mode, $2, body, created_at
  FROM json_to_recordset($1) AS e (id text, partner_id text, mode text, body text, created_at timestamptz)`;
