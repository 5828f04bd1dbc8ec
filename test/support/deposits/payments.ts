import { randomBytes } from 'node:crypto';
import { creditPayments } from '../../../deposits/credit-payments.ts';
import type { DepositStatus, PaymentStatus } from '../../../domain/deposit.ts';
import type { Orm } from '../../../platform/db/orm.ts';
import { query } from '../../../platform/db/sql.ts';

interface TestPayment {
  /** `25`, `0.000001`. */
  usdt?: string;
  blockTime?: Date;
}

/** A payment as the scan leaves it: found, in a block after those before it. @returns its transaction's hash */
export async function recordPayment(
  orm: Orm,
  depositId: string,
  { usdt = '25', blockTime = new Date() }: TestPayment = {},
): Promise<string> {
  const txHash = randomBytes(32).toString('hex');
  await query(
    orm.em.fork(),
    `INSERT INTO deposit_payment (network, tx_hash, log_index, deposit_id, partner_id, mode, value_micro_usdt,
       block_number, transaction_index, block_time)
     SELECT network, $2, 0, id, partner_id, mode, $3::numeric * 1000000,
       1000 + (SELECT count(*) FROM deposit_payment WHERE deposit_id = $1), 0, $4
     FROM deposit WHERE id = $1`,
    [depositId, txHash, usdt, blockTime],
  );
  return txHash;
}

/** {@link recordPayment}, and has it judged. */
export async function pay(orm: Orm, depositId: string, payment: TestPayment = {}): Promise<string> {
  const txHash = await recordPayment(orm, depositId, payment);
  await creditPayments(orm, [depositId]);
  return txHash;
}

interface DepositState {
  status: DepositStatus;
  version: number;
  creditedCents: number;
  /** In the chain's order. */
  payments: PaymentStatus[];
}

export async function readDepositState(orm: Orm, depositId: string): Promise<DepositState> {
  const [row] = await query<DepositState>(
    orm.em.fork(),
    `SELECT status, version, credited_cents::float8 AS "creditedCents", coalesce((
       SELECT json_agg(p.status ORDER BY block_number, log_index) FROM deposit_payment p WHERE p.deposit_id = d.id
     ), '[]') AS payments
     FROM deposit d WHERE id = $1`,
    [depositId],
  );
  if (row === undefined) throw new Error(`there is no deposit ${depositId}`);
  return row;
}

/** Type of each event about a deposit, with the status and the received amount it tells; oldest first. */
export async function depositEvents(orm: Orm, depositId: string): Promise<[string, DepositStatus, number][]> {
  const rows = await query<{ type: string; body: string }>(
    orm.em.fork(),
    `SELECT type, body FROM event WHERE body::jsonb #>> '{data,deposit,id}' = $1 ORDER BY id`,
    [depositId],
  );
  return rows.map(({ type, body }) => {
    const { deposit } = JSON.parse(body).data;
    return [type, deposit.status, deposit.received_amount];
  });
}
