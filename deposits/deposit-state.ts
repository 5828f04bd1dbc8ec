import { sql } from 'kysely';
import { heldClock } from '../accounts/clock.ts';
import { type AccountClock, accountTime } from '../domain/account-clock.ts';
import { MICRO_USDT_PER_CENT, type PaymentStatus, paidStatus } from '../domain/deposit.ts';
import type { EventType } from '../domain/event.ts';
import type { Tenant } from '../domain/mode.ts';
import type { Posting } from '../ledger/posting.ts';
import { DEPOSIT_COLUMNS, KEPT_PAYMENT, of, selectPayments } from '../platform/db/columns.ts';
import type { Row } from '../platform/db/entities.ts';
import { anyOf, readStatement, type Transactor, writeStatement } from '../platform/db/sql.ts';
import { insertEvents, newEvent } from '../requests/event.ts';
import { type DepositRow, type PaymentRow, presentDeposit } from './resource.ts';

/** Payments of one deposit that one transaction judges. Nobody has more unless they send dust on purpose. */
const MAX_FOUND = 500;

type JudgedStatus = Exclude<PaymentStatus, 'found'>;

/** A locked deposit with its payments. */
export interface LockedDeposit extends DepositRow {
  /** Its account's, which the transaction holds. */
  clock: AccountClock;
  /** The first ones, to show. */
  payments: PaymentRow[];
  review_since: string | null;
  version: number;
  /** The first ones not judged yet, in the order of the chain. */
  found: PaymentRow[];
  /** The distinct statuses of the judged ones. */
  statuses: JudgedStatus[];
  /** The sum of those that were judged and not returned, in decimal digits. */
  kept_micro_usdt: string;
  /** How many are in review. */
  review_count: number;
  /** Whether a payment of the exact amount was credited. */
  is_paid: boolean;
}

/**
 * Locks deposits until the transaction ends, in the order of their ids, and reads them with their payments.
 * The scan keeps recording payments meanwhile: it never waits for this lock.
 * @param locked what to do about deposits that another transaction holds
 * @param longestLockWaitMs the limit for each further lock of the transaction; null for the session's
 */
export async function lockDeposits(
  tx: Transactor,
  depositIds: readonly string[],
  locked: 'wait' | 'skip',
  longestLockWaitMs: number | null = null,
): Promise<LockedDeposit[]> {
  const held = await LOCKS[locked](tx, { depositIds, waitMs: longestLockWaitMs });
  // In a separate statement, because the snapshot of the one that waited is older than what was committed
  // meanwhile.
  const clocks = new Map(held.map(({ id, clock }) => [id, clock]));
  const rows = held.length === 0 ? [] : await readLocked(tx, { depositIds: [...clocks.keys()] });
  return rows.map((row) => ({ ...row, clock: clocks.get(row.id) ?? null }));
}

/**
 * The ledger operation of a credit.
 * @param cause distinguishes it from the deposit's other credits, such as the payment's
 * `<network>/<txHash>/<logIndex>`
 */
export function creditOperation(
  { id, partner_id: partnerId, mode }: DepositRow,
  cause: string,
  amountCents: number,
): Posting {
  const flow =
    mode === 'live'
      ? ({ code: 'fund_usdt', debit: 'crypto_clearing', credit: 'prepaid' } as const)
      : ({ code: 'fund_test_usdt', debit: 'faucet', credit: 'prepaid' } as const);
  return {
    // Balance transactions read their source from its end.
    operationId: `deposit/${cause}/${id}`,
    partnerId,
    mode,
    transfers: [{ step: 'credit', phase: 'single', amountCents, ...flow }],
  };
}

/** The change of a deposit whose payments are already written. */
export interface DepositChange {
  deposit: LockedDeposit;
  /** The first payments, as they are now. */
  payments: PaymentRow[];
  /** The distinct statuses of its judged payments. */
  statuses: readonly JudgedStatus[];
  /** What this transaction credits for it. */
  newlyCreditedCents: number;
}

/**
 * Writes the state of deposits that follows from their payments, a `deposit.confirmed` for each that
 * something was credited for, and a `deposit.needs_review` for each that has come to wait for a review: two
 * statements, however many deposits. The caller holds them, and notifies the workers afterwards.
 */
export async function writeDeposits(tx: Transactor, changes: readonly DepositChange[]): Promise<void> {
  const now = new Date();
  const written = changes.map((change) => ({ ...change, row: rowAfter(change, now) }));
  await write(tx, { rows: JSON.stringify(written.map(({ row }) => row)) });
  const events = written.flatMap(({ deposit, newlyCreditedCents, row }): DepositEvent[] => [
    ...(newlyCreditedCents > 0 ? [{ type: 'deposit.confirmed', row, clock: row.clock } as const] : []),
    ...(row.status === 'needs_review' && deposit.status !== 'needs_review'
      ? [{ type: 'deposit.needs_review', row, clock: row.clock } as const]
      : []),
  ]);
  await writeDepositEvents(tx, events);
}

/** A deposit's state, which follows from its payments. @param now in real time */
export function rowAfter(
  { deposit, payments, statuses, newlyCreditedCents }: DepositChange,
  now = new Date(),
): LockedDeposit {
  const changedAt = accountTime(deposit.clock, now).toISOString();
  const status = paidStatus(statuses.map((one) => ({ status: one })));
  const creditedCents = BigInt(deposit.credited_cents) + BigInt(newlyCreditedCents);
  return {
    ...deposit,
    payments,
    status,
    credited_cents: creditedCents.toString(),
    confirmed_at: deposit.confirmed_at ?? (creditedCents > 0n ? changedAt : null),
    review_since: status === 'needs_review' ? (deposit.review_since ?? changedAt) : null,
  };
}

/** An event about a deposit, with the deposit right after the change. */
interface DepositEvent {
  type: Extract<EventType, `deposit.${string}`>;
  row: DepositRow;
  clock: AccountClock;
}

/** Writes events in the order given: one statement, none if there are no events. */
export async function writeDepositEvents(tx: Transactor, events: readonly DepositEvent[]): Promise<void> {
  if (events.length === 0) return;
  const rows = events.map(({ type, row, clock }) => {
    const { partner_id, mode } = row;
    return { ...newEvent({ type, mode, data: { deposit: presentDeposit(row) }, clock }), partner_id };
  });
  await insert(tx, { events: JSON.stringify(rows) });
}

const insert = writeStatement((_, { events }: { events: string }) => insertEvents(events), {
  acrossTenants: 'id',
});

type Lock = { depositIds: readonly string[]; waitMs: number | null };

// Written out: it sets the session's limit before it waits.
const lockStatement = (locked: 'wait' | 'skip') =>
  writeStatement(
    (_, { depositIds, waitMs }: Lock) => sql<Row<'deposit', 'id'> & { clock: AccountClock }>`
      WITH patience AS MATERIALIZED (
        SELECT set_config('lock_timeout', coalesce(${waitMs}::integer || 'ms', current_setting('lock_timeout')), true)
      )
      SELECT d.id, ${heldClock(sql.ref('d.partner_id'), sql.ref('d.mode'))} AS clock FROM patience, deposit d
        WHERE d.id = ANY (${depositIds}) ORDER BY d.id
      FOR NO KEY UPDATE OF d ${locked === 'skip' ? sql`SKIP LOCKED` : sql``}`,
    { acrossTenants: 'id' },
  );
const LOCKS = { wait: lockStatement('wait'), skip: lockStatement('skip') };

const READ_COLUMNS = [...DEPOSIT_COLUMNS, 'review_since', 'version'] as const;

const ONE_EXACT = sql`d.amount_cents * ${sql.lit(Number(MICRO_USDT_PER_CENT))}::numeric`;

const readLocked = readStatement(
  (db, { depositIds }: { depositIds: readonly string[] }) =>
    db
      .selectFrom('deposit as d')
      .innerJoinLateral(
        ({ selectFrom }) =>
          selectFrom('deposit_payment as p')
            .select([
              sql<string>`coalesce(sum(p.value_micro_usdt), 0)::text`.as('received_micro_usdt'),
              sql<
                JudgedStatus[]
              >`coalesce(json_agg(DISTINCT p.status) FILTER (WHERE p.status <> 'found'), '[]')`.as(
                'statuses',
              ),
              sql<string>`coalesce(sum(p.value_micro_usdt) FILTER (WHERE ${KEPT_PAYMENT}), 0)::text`.as(
                'kept_micro_usdt',
              ),
              sql<number>`count(*) FILTER (WHERE p.status = 'in_review')::int`.as('review_count'),
              sql<boolean>`coalesce(bool_or(p.status = 'credited'
              AND p.value_micro_usdt = ${ONE_EXACT}), false)`.as('is_paid'),
            ])
            .whereRef('p.deposit_id', '=', 'd.id')
            .as('arrived'),
        (join) => join.onTrue(),
      )
      .select(of('d', READ_COLUMNS))
      .selectAll('arrived')
      .select([
        selectPayments('d').as('payments'),
        selectPayments('d', { status: 'found', limit: MAX_FOUND }).as('found'),
      ])
      .where('d.id', '=', anyOf(depositIds))
      .orderBy('d.id'),
  { acrossTenants: 'id' },
);

// Written out for the recordsets.
const write = writeStatement(
  (_, { rows }: { rows: string }) => sql`
    UPDATE deposit d SET status = w.status, credited_cents = w.credited_cents, seen_block_number = NULL, confirmed_at = w.confirmed_at,
      review_since = w.review_since, version = d.version + 1, changed_at = account_now(d.partner_id, d.mode)
    FROM json_to_recordset(${rows}) AS w (id text, status text, credited_cents bigint, confirmed_at timestamptz, review_since timestamptz)
    WHERE d.id = w.id`,
  { acrossTenants: 'id' },
);

// What the worker does with deposits, it does for one account at a time, and accounts take turns
// (jobs.ts).

/** Some deposits of an account for which something is due. */
export interface AccountDeposits extends Tenant {
  depositIds: string[];
}

/** Which accounts to find. */
export interface AccountsWanted {
  /** The account to start after; null to start with the first. */
  after: Tenant | null;
  /** Accounts to skip. */
  except: readonly Tenant[];
  /** How many accounts. */
  limit: number;
}

/** Deposits of an account in one transaction. */
export const MAX_AT_ONCE = 100;

/** An account as one text, as statements compare it. */
export const accountOf = ({ partnerId, mode }: Tenant): string => `${partnerId}/${mode}`;
