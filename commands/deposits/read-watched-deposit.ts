import { paymentsOf } from '../../db/deposit-columns.ts';
import type { Orm } from '../../db/orm.ts';
import { query } from '../../db/sql.ts';
import {
  type DepositStatus,
  MICRO_USDT_PER_CENT,
  type TronNetwork,
  usdt,
  wholeCents,
  whyInReview,
} from '../../domain/deposit.ts';
import type { PaymentRow } from '../../resources/deposit.ts';

/** Of those in review; who wants them all asks the command line. */
const MOST_SHOWN = 5;

/** A deposit as the workflow that watches it shows it. Amounts are decimals. */
export interface WatchedDeposit {
  /** Of the row. */
  version: number;
  status: DepositStatus;
  network: TronNetwork;
  address: string;
  amountUsdt: string;
  /** ISO 8601. */
  expiresAt: string;
  creditedUsd: string;
  /** Of `confirming`. */
  seenBlock: number | null;
  /** Whether a payment is recorded that is not judged yet. */
  isJudging: boolean;
  /** The time of the last block that was taken; null before the first. ISO 8601. */
  scannedUntil: string | null;
  /** Null where nothing waits for review. */
  review: PaymentsInReview | null;
}

export interface PaymentsInReview {
  count: number;
  amountUsdt: string;
  /** What crediting them would add to the balance. */
  creditableUsd: string;
  /** The first of them. */
  payments: { amountUsdt: string; txHash: string; block: number; why: string }[];
}

/** @returns null where there is no such deposit */
export async function readWatchedDeposit(orm: Orm, depositId: string): Promise<WatchedDeposit | null> {
  const [row] = await query<Row>(orm.em.fork(), READ, [depositId]);
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
    review: row.review_count === 0 ? null : reviewOf(row),
  };
}

/** Cents as dollars: `25.00`. */
const usd = (cents: number): string => usdt(BigInt(cents) * MICRO_USDT_PER_CENT, 2);

function reviewOf(row: Row): PaymentsInReview {
  const creditableCents = wholeCents(BigInt(row.kept_micro_usdt)) - Number(row.credited_cents);
  return {
    count: row.review_count,
    amountUsdt: usdt(BigInt(row.review_micro_usdt), 2),
    creditableUsd: usd(Math.max(0, creditableCents)),
    payments: row.in_review.map((payment) => ({
      amountUsdt: usdt(BigInt(payment.value_micro_usdt), 2),
      txHash: payment.tx_hash,
      block: Number(payment.block_number),
      why: whyInReview(payment) ?? '',
    })),
  };
}

interface Row {
  version: number;
  status: DepositStatus;
  network: TronNetwork;
  address: string;
  amount_cents: string;
  credited_cents: string;
  expires_at: string | Date;
  seen_block_number: string | null;
  scanned_until: string | Date | null;
  is_judging: boolean;
  review_count: number;
  review_micro_usdt: string;
  kept_micro_usdt: string;
  in_review: PaymentRow[];
}

const READ = `
  SELECT d.version, d.status, d.network, d.address, d.amount_cents, d.credited_cents, d.expires_at, d.seen_block_number,
    s.block_time AS scanned_until, arrived.*,
    ${paymentsOf('d', { which: "p.status = 'in_review'", limit: MOST_SHOWN })} AS in_review
  FROM deposit d LEFT JOIN chain_scan s ON s.network = d.network CROSS JOIN LATERAL (
    SELECT coalesce(bool_or(p.status = 'found'), false) AS is_judging,
      count(*) FILTER (WHERE p.status = 'in_review')::int AS review_count,
      coalesce(sum(p.value_micro_usdt) FILTER (WHERE p.status = 'in_review'), 0)::text AS review_micro_usdt,
      coalesce(sum(p.value_micro_usdt) FILTER (WHERE p.status IN ('credited', 'in_review')), 0)::text AS kept_micro_usdt
    FROM deposit_payment p WHERE p.deposit_id = d.id) arrived
  WHERE d.id = $1`;
