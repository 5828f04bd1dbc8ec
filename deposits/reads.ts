import { type RawBuilder, sql } from 'kysely';
import {
  creditableCents,
  type DepositStatus,
  MAX_PAYMENTS_SHOWN,
  type NodeSays,
  usdt,
  WHY_IN_REVIEW,
} from '../domain/deposit.ts';
import { isoTime } from '../domain/iso-time.ts';
import type { Tenant } from '../domain/mode.ts';
import { unknownId } from '../domain/refusal.ts';
import { DEPOSIT_COLUMNS, KEPT_PAYMENT, of, receivedBy, selectPayments } from '../platform/db/columns.ts';
import type { Row } from '../platform/db/entities.ts';
import { newestRows } from '../platform/db/newest.ts';
import type { Orm } from '../platform/db/orm.ts';
import { columnList, readStatement, tenantStatement } from '../platform/db/sql.ts';
import { watchDepositWorkflowId } from '../workflows/messages.ts';
import { type DepositRow, type PaymentRow, presentDeposit } from './resource.ts';

interface DepositFilter {
  status: DepositStatus | null;
  partner: string | null;
  /** At most 10,001. */
  limit: number;
}

/** Live deposits of all accounts, newest first. */
export const readDeposits = async (orm: Orm, filter: DepositFilter) =>
  (await listWith(filter)(orm.em.fork(), filter)).map(present);

interface OperatorRow extends DepositRow, Row<'deposit', 'review_since'> {
  payments: PaymentRow[];
  partner_name: string;
}

const DEPOSIT = sql`${columnList('deposit', DEPOSIT_COLUMNS, 'd')}, d.review_since,
  ${receivedBy('d')} AS received_micro_usdt,
  ${selectPayments('d')} AS payments, (SELECT name FROM partner WHERE id = d.partner_id) AS partner_name`;

const listWith = (filter: DepositFilter) =>
  readStatement(
    (_, { partner, status, limit }: DepositFilter) => {
      let ids: RawBuilder<unknown> = sql`SELECT id FROM deposit WHERE mode = 'live'
        ORDER BY id DESC LIMIT ${limit}`;
      if (filter.partner !== null) {
        // One partner has few enough deposits to look through them all.
        ids = sql`SELECT id FROM deposit WHERE partner_id = ${partner} AND mode = 'live'
          AND status = coalesce(${status}, status) ORDER BY id DESC LIMIT ${limit}`;
      } else if (filter.status !== null) {
        const where = { mode: 'live', status };
        const { limit: maxRows } = filter;
        ids = newestRows({ table: 'deposit', columns: ['id'], where, id: 'id', limit, maxRows });
      }
      return sql<OperatorRow>`SELECT ${DEPOSIT} FROM deposit d WHERE d.id IN (${ids}) ORDER BY d.id DESC`;
    },
    { acrossTenants: 'operator' },
  );

/** A deposit as the partner sees it, with its partner and its chain. Amounts are in cents. */
const present = (row: OperatorRow) => ({
  ...presentDeposit(row),
  partner_id: row.partner_id,
  partner_name: row.partner_name,
  tron_network: row.network,
  /** When its payments in review began to wait for an operator. */
  review_since: isoTime(row.review_since),
});

/**
 * A deposit with everything an operator should know before resolving it. @throws Refusal if there is no such
 * deposit
 */
export async function readDeposit(orm: Orm, depositId: string) {
  const [row] = await selectDeposit(orm.em.fork(), { depositId });
  if (row === undefined) throw unknownId('dep', depositId, 'run "operator deposit list"');
  const deposit = present(row);
  return {
    ...deposit,
    /** The index below the xpub that the address is derived with. */
    address_index: row.address_index,
    /** The block, not final yet, in which a payment was seen while the deposit is `confirming`. */
    seen_block: row.seen_block_number === null ? null : Number(row.seen_block_number),
    /** Counts the changes of the deposit; `--if-version` takes it. */
    version: row.version,
    payment_count: row.payment_count,
    payments: deposit.payments.map((payment, index) => {
      const { log_index, status, review_reason: why } = row.payments[index] as PaymentRow;
      return { ...payment, log_index, status, reason: why === null ? null : WHY_IN_REVIEW[why] };
    }),
    /** Transfers that too few nodes show, with what each node says. They are not payments yet. */
    unconfirmed_payments: row.unconfirmed.map(({ value_micro_usdt, ...transfer }) => ({
      ...transfer,
      amount_usdt: usdt(BigInt(value_micro_usdt), 2),
      seen_at: isoTime(transfer.seen_at),
    })),
    /** What crediting the payments in review would add; null if there are none. */
    creditable_amount:
      row.review_since === null
        ? null
        : Number(creditableCents(BigInt(row.kept_micro_usdt), BigInt(row.credited_cents))),
    resolutions: row.resolutions.map((resolution) => ({ ...resolution, at: isoTime(resolution.at) })),
    workflow_id: watchDepositWorkflowId(row.id),
  };
}

export type DepositDetail = Awaited<ReturnType<typeof readDeposit>>;

interface DetailRow extends OperatorRow, Row<'deposit', 'address_index' | 'seen_block_number' | 'version'> {
  payment_count: number;
  kept_micro_usdt: string;
  unconfirmed: {
    tx_hash: string;
    log_index: number;
    value_micro_usdt: string;
    block: number;
    nodes: NodeSays[];
    seen_at: string;
  }[];
  resolutions: { at: string }[];
}

const selectDeposit = readStatement(
  (_, { depositId }: { depositId: string }) => sql<DetailRow>`
    SELECT ${DEPOSIT}, d.address_index, d.seen_block_number, d.version,
      (SELECT count(*)::int FROM deposit_payment m WHERE m.deposit_id = d.id) AS payment_count,
      (SELECT coalesce(sum(p.value_micro_usdt), 0)::text FROM deposit_payment p
        WHERE p.deposit_id = d.id AND ${KEPT_PAYMENT}) AS kept_micro_usdt,
      (SELECT coalesce(json_agg(u), '[]') FROM (
        SELECT tx_hash, log_index, value_micro_usdt::text, block_number AS block, says AS nodes, seen_at
        FROM unconfirmed_payment WHERE deposit_id = d.id
          ORDER BY seen_at LIMIT ${sql.lit(MAX_PAYMENTS_SHOWN)}) u
      ) AS unconfirmed,
      (SELECT coalesce(json_agg(r ORDER BY r.version), '[]') FROM (
        SELECT outcome, credited_cents AS credited_amount, reason, actor, version, resolved_at AS at
        FROM deposit_resolution WHERE deposit_id = d.id) r) AS resolutions
    FROM deposit d WHERE d.id = ${depositId}`,
  { acrossTenants: 'operator' },
);

/** A deposit as its partner sees it. */
export const selectOwnDeposit = tenantStatement(
  (db, { partnerId, mode, depositId }: Tenant & { depositId: string }) =>
    db
      .selectFrom('deposit as d')
      .select(of('d', DEPOSIT_COLUMNS))
      .select([receivedBy('d').as('received_micro_usdt'), selectPayments('d').as('payments')])
      .where('d.partner_id', '=', partnerId)
      .where('d.mode', '=', mode)
      .where('d.id', '=', depositId),
);
