import { sql } from 'kysely';
import type { ChainName } from '../domain/deposit.ts';
import type { Orm } from '../platform/db/orm.ts';
import { autocommitStatement, type Reader, readStatement } from '../platform/db/sql.ts';
import type { BlockVerdict } from './tron/tron-chain.ts';

/** Payments that the nodes are asked about in one turn. Those of one block cost no more than one. */
const MAX_ASKED = 1_000;

/** A transfer to an address of ours that too few nodes have shown so far. */
export interface UnconfirmedPayment {
  txHash: string;
  logIndex: number;
  depositId: string;
  /** The address' 20 bytes in hex. */
  toHash: string;
  valueMicroUsdt: bigint;
  blockNumber: number;
  blockHash: string;
}

/**
 * Those that are due, the ones that the nodes were asked about longest ago first. The longer a payment waits,
 * the less often they are asked, and at least every ten minutes: a quota must last for the scan as well. If they
 * were asked in the future, the database's clock has been set back since.
 */
export async function readUnconfirmed(em: Reader, network: ChainName): Promise<UnconfirmedPayment[]> {
  const rows = await unconfirmed(em, { network });
  return rows.map((row) => ({
    txHash: row.tx_hash,
    logIndex: row.log_index,
    depositId: row.deposit_id,
    toHash: row.to_hash,
    valueMicroUsdt: BigInt(row.value_micro_usdt),
    blockNumber: Number(row.block_number),
    blockHash: row.block_hash,
  }));
}

/** What the nodes said when they were asked again. */
export interface AskedAgain extends BlockVerdict {
  payment: UnconfirmedPayment;
}

/**
 * Records a confirmed payment, which is judged next, forgets a denied one, and notes what the nodes say about
 * the others: one statement. It can be repeated, even concurrently. If a deposit has no other payment, the
 * scan shows it as awaiting its payment again with the next block.
 */
export async function settleUnconfirmed(
  orm: Orm,
  network: ChainName,
  asked: readonly AskedAgain[],
): Promise<void> {
  const rows = asked.map(({ payment, outcome, says }) => ({
    tx_hash: payment.txHash,
    log_index: payment.logIndex,
    deposit_id: payment.depositId,
    value_micro_usdt: payment.valueMicroUsdt.toString(),
    outcome,
    says,
  }));
  await settle(orm, { network, rows: JSON.stringify(rows) });
}

type OfChain = { network: ChainName };

const unconfirmed = readStatement(
  (db, { network }: OfChain) =>
    db
      .selectFrom('unconfirmed_payment as u')
      .innerJoin('deposit as d', 'd.id', 'u.deposit_id')
      .select([
        'u.tx_hash',
        'u.log_index',
        'u.deposit_id',
        'u.value_micro_usdt',
        'u.block_number',
        'u.block_hash',
      ])
      .select(sql<string>`encode(d.address_hash, 'hex')`.as('to_hash'))
      .where('u.network', '=', network)
      .where(
        sql<boolean>`(asked_at > now() OR asked_at + least((asked_at - seen_at) / 4, interval '10 minutes') <= now())`,
      )
      .orderBy('u.asked_at')
      .limit(sql.lit(MAX_ASKED)),
  { acrossTenants: 'chain' },
);

// Written out for the recordset.
const settle = autocommitStatement(
  (_, { network, rows }: OfChain & { rows: string }) => sql`
    WITH said AS MATERIALIZED (
      SELECT * FROM json_to_recordset(${rows}) AS s (tx_hash text, log_index integer, deposit_id text,
        value_micro_usdt numeric, outcome text, says jsonb)
    ), settled AS (
      DELETE FROM unconfirmed_payment u USING said s
      WHERE u.network = ${network} AND u.tx_hash = s.tx_hash AND u.log_index = s.log_index
        AND u.deposit_id = s.deposit_id AND u.value_micro_usdt = s.value_micro_usdt AND s.outcome <> 'open'
      RETURNING u.*, s.outcome
    ), recorded AS (
      INSERT INTO deposit_payment (network, tx_hash, log_index, deposit_id, partner_id,
        mode, value_micro_usdt, block_number, transaction_index, block_time)
      SELECT network, tx_hash, log_index, deposit_id, partner_id, mode, value_micro_usdt, block_number,
        transaction_index, block_time
      FROM settled WHERE outcome = 'confirmed'
      ON CONFLICT (network, tx_hash, log_index) DO NOTHING
    )
    UPDATE unconfirmed_payment u SET says = s.says, asked_at = now() FROM said s
    WHERE u.network = ${network} AND u.tx_hash = s.tx_hash AND u.log_index = s.log_index
      AND u.deposit_id = s.deposit_id AND u.value_micro_usdt = s.value_micro_usdt AND s.outcome = 'open'`,
  { acrossTenants: 'chain' },
);
