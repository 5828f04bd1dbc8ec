import { type Expression, sql } from 'kysely';
import type { NodeSays } from '../domain/deposit.ts';
import {
  type DepositNetwork,
  type DepositStatus,
  MAX_PAYMENTS_SHOWN,
  usdt,
  wholeCents,
  whyInReview,
} from '../domain/deposit.ts';
import { unknownId } from '../domain/refusal.ts';
import { DEPOSIT_COLUMNS, of, receivedBy, selectPayments } from '../platform/db/columns.ts';
import type { Row } from '../platform/db/entities.ts';
import { newestRows } from '../platform/db/newest.ts';
import type { Orm } from '../platform/db/orm.ts';
import { type Reads, readStatement } from '../platform/db/sql.ts';
import { watchDepositWorkflowId } from '../workflows/messages.ts';
import { type DepositResource, type DepositRow, type PaymentRow, presentDeposit } from './resource.ts';

/** A deposit as the partner sees it, with its partner and its chain. Amounts are in cents. */
interface OperatorDeposit extends DepositResource {
  partner_id: string;
  partner_name: string;
  tron_network: DepositNetwork;
  /** When its payments in review began to wait for an operator. */
  review_since: string | null;
}

interface DepositFilter {
  status: DepositStatus | null;
  partnerId: string | null;
  /** At most 10,001. */
  limit: number;
}

/** Newest first. */
export async function readDeposits(orm: Orm, filter: DepositFilter): Promise<OperatorDeposit[]> {
  const em = orm.em.fork();
  const { partnerId, status, limit } = filter;
  if (partnerId !== null) return (await selectNewestByPartner(em, { partnerId, status, limit })).map(present);
  if (status !== null) return (await newestWithStatus(em, { status, limit })).map(present);
  return (await newest(em, { limit })).map(present);
}

const DEPOSIT = [
  ...of('d', DEPOSIT_COLUMNS),
  'd.review_since',
  receivedBy('d').as('received_micro_usdt'),
  selectPayments('d').as('payments'),
  sql<string>`(SELECT name FROM partner WHERE id = d.partner_id)`.as('partner_name'),
] as const;

const depositsIn = (db: Reads, ids: Expression<string>) =>
  db.selectFrom('deposit as d').select(DEPOSIT).where('d.id', 'in', ids).orderBy('d.id', 'desc');

const newest = readStatement(
  (db, { limit }: { limit: number }) => {
    const ids = db
      .selectFrom('deposit')
      .select('id')
      .where('mode', '=', sql.lit('live'))
      .orderBy('id', 'desc')
      .limit(limit);
    return depositsIn(db, ids.$asScalar());
  },
  { acrossTenants: 'operator' },
);

const newestWithStatus = readStatement(
  (db, { status, limit }: { status: DepositStatus; limit: number }) => {
    const ids = newestRows({
      table: 'deposit',
      columns: ['id'],
      where: { mode: 'live', status },
      id: 'id',
      limit,
      maxRows: 10_001,
    });
    return depositsIn(db, sql<string>`${ids}`);
  },
  { acrossTenants: 'operator' },
);

// One partner has few enough deposits to look through them all.
const selectNewestByPartner = readStatement(
  (db, { partnerId, status, limit }: DepositFilter & { partnerId: string }) => {
    const ids = db
      .selectFrom('deposit')
      .select('id')
      .where('partner_id', '=', partnerId)
      .where('mode', '=', 'live')
      .where('status', '=', sql<DepositStatus>`coalesce(${status}, status)`)
      .orderBy('id', 'desc')
      .limit(limit);
    return depositsIn(db, ids.$asScalar());
  },
);

function present(
  row: DepositRow & Row<'deposit', 'review_since'> & { partner_name: string },
): OperatorDeposit {
  return {
    ...presentDeposit(row),
    partner_id: row.partner_id,
    partner_name: row.partner_name,
    tron_network: row.network,
    review_since: row.review_since === null ? null : new Date(row.review_since).toISOString(),
  };
}

/** A deposit with everything an operator should know before resolving it. */
export interface DepositDetail extends Omit<OperatorDeposit, 'payments'> {
  /** The index below the xpub that the address is derived with. */
  address_index: number | null;
  /** The block, not final yet, in which a payment was seen while the deposit is `confirming`. */
  seen_block: number | null;
  /** Counts the changes of the deposit; `--if-version` takes it. */
  version: number;
  payment_count: number;
  /** The first hundred. */
  payments: DetailedPayment[];
  /** Transfers that too few nodes show, with what each node says. They are not payments yet. */
  unconfirmed_payments: UnconfirmedTransfer[];
  /** What crediting the payments in review would add; null if there are none. */
  creditable_amount: number | null;
  resolutions: Resolution[];
  workflow_id: string;
}

type DetailedPayment = DepositResource['payments'][number] & {
  log_index: number;
  /** Why it is, or was, in review. */
  reason: string | null;
};

interface UnconfirmedTransfer {
  tx_hash: string;
  log_index: number;
  amount_usdt: string;
  block: number;
  nodes: NodeSays[];
  seen_at: string;
}

interface Resolution {
  outcome: 'credited' | 'returned';
  credited_amount: number;
  reason: string;
  actor: string;
  version: number;
  at: string;
}

/** @throws Refusal if there is no such deposit. */
export async function readDeposit(orm: Orm, depositId: string): Promise<DepositDetail> {
  const em = orm.em.fork();
  const [row] = await depositDetail(em, { depositId });
  if (row === undefined) throw unknownId('dep', depositId, 'run "operator deposit list"');
  const deposit = present(row);
  const resolutions = await selectResolutions(em, { depositId });
  const unconfirmed = await selectUnconfirmed(em, { depositId });
  return {
    ...deposit,
    address_index: row.address_index,
    seen_block: row.seen_block_number === null ? null : Number(row.seen_block_number),
    version: row.version,
    payment_count: row.payment_count ?? 0,
    payments: deposit.payments.map((payment, index) => {
      const { log_index, status, ...stored } = row.payments[index] as PaymentRow;
      return { ...payment, log_index, status, reason: whyInReview(stored) };
    }),
    unconfirmed_payments: unconfirmed.map((transfer) => ({
      tx_hash: transfer.tx_hash,
      log_index: transfer.log_index,
      amount_usdt: usdt(BigInt(transfer.value_micro_usdt), 2),
      block: Number(transfer.block_number),
      nodes: transfer.says,
      seen_at: new Date(transfer.seen_at).toISOString(),
    })),
    creditable_amount:
      row.review_since === null
        ? null
        : wholeCents(BigInt(row.kept_micro_usdt ?? 0)) - deposit.credited_amount,
    resolutions: resolutions.map(({ outcome, credited_cents, reason, actor, version, resolved_at }) => ({
      outcome,
      credited_amount: Number(credited_cents),
      reason,
      actor,
      version,
      at: new Date(resolved_at).toISOString(),
    })),
    workflow_id: watchDepositWorkflowId(row.id),
  };
}

const depositDetail = readStatement(
  (db, { depositId }: { depositId: string }) =>
    db
      .selectFrom('deposit as d')
      .select(DEPOSIT)
      .select(['d.address_index', 'd.seen_block_number', 'd.version'])
      .select(({ selectFrom }) => {
        const payments = selectFrom('deposit_payment as m').whereRef('m.deposit_id', '=', 'd.id');
        return [
          payments.select(sql<number>`count(*)::int`.as('count')).as('payment_count'),
          payments
            .where('m.status', 'in', ['credited', 'in_review'])
            .select(({ fn }) => sql<string>`coalesce(${fn.sum('m.value_micro_usdt')}, 0)::text`.as('kept'))
            .as('kept_micro_usdt'),
        ];
      })
      .where('d.id', '=', depositId),
  { acrossTenants: 'operator' },
);

const selectResolutions = readStatement((db, { depositId }: { depositId: string }) =>
  db
    .selectFrom('deposit_resolution')
    .select(['outcome', 'credited_cents', 'reason', 'actor', 'version', 'resolved_at'])
    .where('deposit_id', '=', depositId)
    .orderBy('version'),
);

const selectUnconfirmed = readStatement(
  (db, { depositId }: { depositId: string }) =>
    db
      .selectFrom('unconfirmed_payment')
      .select(['tx_hash', 'log_index', 'value_micro_usdt', 'block_number', 'says', 'seen_at'])
      .where('deposit_id', '=', depositId)
      .orderBy('seen_at')
      .limit(sql.lit(MAX_PAYMENTS_SHOWN)),
  { acrossTenants: 'operator' },
);
