import { sql } from 'kysely';
import {
  creditableCents,
  type DepositNetwork,
  type DepositStatus,
  MICRO_USDT_PER_CENT,
  usdt,
  WHY_IN_REVIEW,
} from '../domain/deposit.ts';
import { KEPT_PAYMENT, selectPayments } from '../platform/db/columns.ts';
import type { Row } from '../platform/db/entities.ts';
import { followingAccounts } from '../platform/db/following-accounts.ts';
import { hasPassed } from '../platform/db/has-passed.ts';
import type { Orm } from '../platform/db/orm.ts';
import { ASYNCHRONOUS_COMMIT, autocommitStatement, readStatement } from '../platform/db/sql.ts';

// Every deposit has a workflow that shows its state. This module has what the workflow reads, and finds
// deposits that have changed since their workflows were last informed.

/** A deposit as its workflow shows it. Amounts are decimals. */
export interface WatchedDeposit {
  /** Counts the row's changes. */
  version: number;
  status: DepositStatus;
  network: DepositNetwork;
  address: string;
  amountUsdt: string;
  /** ISO 8601. */
  expiresAt: string;
  creditedUsd: string;
  /** The block in which a payment was seen, if the deposit is `confirming`. */
  seenBlock: number | null;
  /** Whether a recorded payment is not judged yet. */
  isJudging: boolean;
  /** The time of the last block that was taken; null before the first. ISO 8601. */
  scannedUntil: string | null;
  /** Null if nothing is in review. */
  review: PaymentsInReview | null;
}

interface PaymentsInReview {
  count: number;
  amountUsdt: string;
  /** What crediting them would add to the balance. */
  creditableUsd: string;
  /** The first ones. */
  payments: { amountUsdt: string; txHash: string; block: number; why: string }[];
}

/** @returns null if there is no such deposit */
export async function readWatchedDeposit(orm: Orm, depositId: string): Promise<WatchedDeposit | null> {
  const [row] = await watched(orm.em.fork(), { depositId });
  if (row === undefined) return null;
  return {
    version: row.version,
    status: row.status,
    network: row.network,
    address: row.address,
    amountUsdt: usdt(BigInt(row.amount_cents) * MICRO_USDT_PER_CENT, 2),
    expiresAt: new Date(row.expires_at).toISOString(),
    creditedUsd: usd(Number(row.credited_cents)),
    seenBlock: row.seen_block_number === null ? null : Number(row.seen_block_number),
    isJudging: row.is_judging,
    scannedUntil: row.scanned_until === null ? null : new Date(row.scanned_until).toISOString(),
    review: row.review_count === 0 ? null : toPaymentsInReview(row),
  };
}

/** A change of a deposit that its workflow has not been informed of. */
type UnnotifiedDeposit = Row<'deposit', 'id' | 'partner_id' | 'mode' | 'version'>;

/**
 * Leases deposits whose workflows have to be informed of a change: a few of each account in turn, oldest
 * first.
 * @param after the account to start after; null to start with the first
 * @returns `last`: the account to continue after; null if every account has had its turn
 */
export async function takeUnnotifiedDeposits(
  orm: Orm,
  after: string | null,
): Promise<{ unnotified: UnnotifiedDeposit[]; last: string | null }> {
  const rows = await take(orm, { after: after ?? '' });
  const accounts = [...new Set(rows.map(({ partner_id }) => partner_id))];
  return {
    unnotified: rows.filter((row): row is UnnotifiedDeposit => row.id !== null),
    last: accounts.length < ACCOUNTS ? null : (accounts.at(-1) ?? null),
  };
}

/** Payments shown of those in review; the command line shows them all. */
const MAX_SHOWN = 5;
/** Deposits of an account in one turn, and accounts in one turn. */
const MAX_EACH = 4;
const ACCOUNTS = 8;
/** Longer than it takes to notify a workflow. */
const LEASE_SECONDS = 15;
/** How long a notified workflow has to look, unless its worker is gone. */
const LOOK_SECONDS = 60;

/** Cents as dollars: `25.00`. */
const usd = (cents: number): string => usdt(BigInt(cents) * MICRO_USDT_PER_CENT, 2);

type WatchedRow = Awaited<ReturnType<typeof watched>>[number];

function toPaymentsInReview(row: WatchedRow): PaymentsInReview {
  const cents = creditableCents(BigInt(row.kept_micro_usdt), BigInt(row.credited_cents));
  return {
    count: row.review_count,
    amountUsdt: usdt(BigInt(row.review_micro_usdt), 2),
    creditableUsd: usd(Number(cents)),
    payments: row.in_review.map((payment) => ({
      amountUsdt: usdt(BigInt(payment.value_micro_usdt), 2),
      txHash: payment.tx_hash,
      block: Number(payment.block_number),
      why: payment.review_reason === null ? '' : WHY_IN_REVIEW[payment.review_reason],
    })),
  };
}

const watched = readStatement(
  (db, { depositId }: { depositId: string }) =>
    db
      .selectFrom('deposit as d')
      .leftJoin('chain_scan as s', 's.network', 'd.network')
      .innerJoinLateral(
        ({ selectFrom }) =>
          selectFrom('deposit_payment as p')
            .select([
              sql<boolean>`coalesce(bool_or(p.status = 'found'), false)`.as('is_judging'),
              sql<number>`count(*) FILTER (WHERE p.status = 'in_review')::int`.as('review_count'),
              sql<string>`coalesce(sum(p.value_micro_usdt) FILTER (WHERE p.status = 'in_review'), 0)::text`.as(
                'review_micro_usdt',
              ),
              sql<string>`coalesce(sum(p.value_micro_usdt) FILTER (WHERE ${KEPT_PAYMENT}), 0)::text`.as(
                'kept_micro_usdt',
              ),
            ])
            .whereRef('p.deposit_id', '=', 'd.id')
            .as('arrived'),
        (join) => join.onTrue(),
      )
      .select(['d.version', 'd.status', 'd.network', 'd.address', 'd.amount_cents', 'd.credited_cents'])
      .select(['d.expires_at', 'd.seen_block_number', 's.block_time as scanned_until'])
      .selectAll('arrived')
      .select(selectPayments('d', { status: 'in_review', limit: MAX_SHOWN }).as('in_review'))
      .where('d.id', '=', depositId),
  { acrossTenants: 'queue' },
);

// Written out, because it takes deposits of several accounts in turn. A deposit that another transaction
// holds comes later.
const take = autocommitStatement(
  (_, { after }: { after: string }) => sql<UnnotifiedDeposit | { id: null; partner_id: string }>`
    WITH RECURSIVE ${ASYNCHRONOUS_COMMIT}, ${followingAccounts({
      table: 'deposit',
      account: ['partner_id'],
      isQueued: sql`told_version < version`,
      after: sql`${after}`,
    })}, account AS MATERIALIZED (
      SELECT partner_id FROM following LIMIT ${sql.lit(ACCOUNTS)}
    ), due AS MATERIALIZED (
      SELECT d.id FROM account a CROSS JOIN LATERAL (
        SELECT u.id FROM deposit u
        WHERE u.told_version < u.version AND u.partner_id = a.partner_id
          AND ${hasPassed('u.lease_expires_at', 120_000)}
        ORDER BY u.id LIMIT ${sql.lit(MAX_EACH)} FOR NO KEY UPDATE SKIP LOCKED) d
    ), leased AS (
      UPDATE deposit d SET lease_expires_at = clock_timestamp() + ${sql.lit(LEASE_SECONDS)} * interval '1 second'
      FROM due WHERE d.id = due.id
      RETURNING d.id, d.partner_id, d.mode, d.version
    )
    SELECT a.partner_id, l.id, l.mode, l.version
    FROM asynchronous_commit, account a LEFT JOIN leased l ON l.partner_id = a.partner_id
    ORDER BY a.partner_id, l.id`,
  { acrossTenants: 'queue' },
);

/** Records which version of a deposit its workflow has seen. It is still notified of later changes. */
export const markDepositNotified = autocommitStatement(
  (db, { id, version }: { id: string; version: number }) =>
    db
      .updateTable('deposit')
      .set({ told_version: version, lease_expires_at: sql`'-infinity'` })
      .where('id', '=', id)
      .where('told_version', '<', version),
  { acrossTenants: 'queue' },
);

/** Gives a notified workflow time to look before it is notified again, whatever changes in the meantime. */
export const awaitLook = autocommitStatement(
  (db, { id, version }: { id: string; version: number }) =>
    db
      .updateTable('deposit')
      .set({ lease_expires_at: sql`clock_timestamp() + ${sql.lit(LOOK_SECONDS)} * interval '1 second'` })
      .where('id', '=', id)
      .where('told_version', '<', version),
  { acrossTenants: 'queue' },
);
