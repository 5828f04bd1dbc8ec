import { unknownId } from '../../commands/idempotency/refusal.ts';
import { depositColumns, paymentsOf } from '../../db/deposit-columns.ts';
import { newestOf } from '../../db/newest.ts';
import type { Orm } from '../../db/orm.ts';
import { query } from '../../db/sql.ts';
import { type DepositStatus, type TronNetwork, wholeCents, whyInReview } from '../../domain/deposit.ts';
import {
  type DepositResource,
  type DepositRow,
  type PaymentRow,
  presentDeposit,
} from '../../resources/deposit.ts';
import { watchDepositWorkflowId } from '../../workflows/messages.ts';

/** A deposit as operators see it: as partners do, and whose it is. Amounts in cents. */
export interface OperatorDeposit extends DepositResource {
  partner_id: string;
  /** The chain, which partners are not told. */
  tron_network: TronNetwork;
  credited_amount: number;
  /** Since when it waits for an operator. */
  review_since: string | null;
}

export interface DepositFilter {
  status: DepositStatus | null;
  partnerId: string | null;
  limit: number;
}

/** Newest first. */
export async function readDeposits(orm: Orm, filter: DepositFilter): Promise<OperatorDeposit[]> {
  const { status, partnerId, limit } = filter;
  const found = partnerId === null ? ofAll(filter) : OF_PARTNER;
  const rows = await query<OperatorDepositRow>(
    orm.em.fork(),
    `SELECT ${COLUMNS} FROM (${found}) found JOIN deposit d ON d.id = found.id ORDER BY d.id DESC`,
    [
      limit,
      ...(status === null && partnerId === null ? [] : [status]),
      ...(partnerId === null ? [] : [partnerId]),
    ],
  );
  return rows.map(present);
}

const ofAll = ({ status, limit }: DepositFilter): string =>
  status === null
    ? 'SELECT id FROM deposit ORDER BY id DESC LIMIT $1'
    : newestOf({
        ...{ table: 'deposit', columns: 'id', where: { status: '$2' }, id: 'id' },
        ...{ limit: '$1', most: limit },
      });

// Of one account there are few enough to be looked through.
const OF_PARTNER = `
  SELECT id FROM deposit
  WHERE partner_id = $3 AND mode = 'live' AND ($2::text IS NULL OR status = $2) ORDER BY id DESC LIMIT $1`;

type PaymentOfDetail = DepositResource['payments'][number] & {
  log_index: number;
  status: PaymentRow['status'];
  /** Why it waits, or waited, for an operator. */
  reason: string | null;
};

/** A deposit with all there is to know before it is resolved. */
export interface DepositDetail extends Omit<OperatorDeposit, 'payments'> {
  partner_name: string;
  /** Of its address below the xpub. */
  address_index: number;
  /** Of `confirming`: where a payment was seen. */
  seen_block: number | null;
  /** Counts its changes; `--if-version` takes it. */
  version: number;
  payment_count: number;
  /** The first hundred. */
  payments: PaymentOfDetail[];
  /** What crediting what is in review would add; null where nothing is. */
  creditable_amount: number | null;
  resolutions: Resolution[];
  workflow_id: string;
}

interface Resolution {
  outcome: 'credited' | 'returned';
  credited_amount: number;
  reason: string;
  actor: string;
  version: number;
  at: string;
}

/** @throws Refusal where there is none. */
export async function readDeposit(orm: Orm, depositId: string): Promise<DepositDetail> {
  const [row] = await query<DetailRow>(orm.em.fork(), DETAIL, [depositId]);
  if (row === undefined) throw unknownId('dep', depositId, 'run "operator deposit list"');
  const deposit = present(row);
  const keptCents = wholeCents(BigInt(row.kept_micro_usdt));
  return {
    ...deposit,
    partner_name: row.partner_name,
    address_index: row.address_index,
    seen_block: row.seen_block_number === null ? null : Number(row.seen_block_number),
    version: row.version,
    payment_count: row.payment_count,
    payments: deposit.payments.map((payment, index) => {
      const { log_index, status, ...stored } = (row.payments ?? [])[index] as PaymentRow;
      return { ...payment, log_index, status, reason: whyInReview(stored) };
    }),
    creditable_amount: row.review_since === null ? null : keptCents - deposit.credited_amount,
    resolutions: row.resolutions.map(({ at, ...resolution }) => ({
      ...resolution,
      at: new Date(at).toISOString(),
    })),
    workflow_id: watchDepositWorkflowId(row.id),
  };
}

interface OperatorDepositRow extends DepositRow {
  review_since: string | Date | null;
}

interface DetailRow extends OperatorDepositRow {
  partner_name: string;
  address_index: number;
  seen_block_number: string | null;
  version: number;
  payment_count: number;
  kept_micro_usdt: string;
  resolutions: Resolution[];
}

function present(row: OperatorDepositRow): OperatorDeposit {
  return {
    ...presentDeposit(row),
    partner_id: row.partner_id,
    tron_network: row.network,
    credited_amount: Number(row.credited_cents),
    review_since: row.review_since === null ? null : new Date(row.review_since).toISOString(),
  };
}

const COLUMNS = `${depositColumns('d')}, d.review_since, ${paymentsOf('d')} AS payments`;

const DETAIL = `
  SELECT ${COLUMNS}, p.name AS partner_name, d.address_index, d.seen_block_number, d.version, arrived.*,
    coalesce((SELECT json_agg(json_build_object('outcome', r.outcome, 'credited_amount', r.credited_cents,
      'reason', r.reason, 'actor', r.actor, 'version', r.version, 'at', r.resolved_at) ORDER BY r.version)
      FROM deposit_resolution r WHERE r.deposit_id = d.id), '[]') AS resolutions
  FROM deposit d JOIN partner p ON p.id = d.partner_id CROSS JOIN LATERAL (
    SELECT count(*)::int AS payment_count,
      coalesce(sum(m.value_micro_usdt) FILTER (WHERE m.status IN ('credited', 'in_review')), 0)::text AS kept_micro_usdt
    FROM deposit_payment m WHERE m.deposit_id = d.id) arrived
  WHERE d.id = $1`;
