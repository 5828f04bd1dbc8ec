import type { EntityManager } from '@mikro-orm/postgresql';
import type { Orm } from '../../db/orm.ts';
import { query } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import type { TronNetwork } from '../../domain/deposit.ts';
import type { Mode } from '../../domain/mode.ts';

/** Deposits that expire in one transaction; the others do in the next ones. */
const MOST_EXPIRED = 5_000;

/** A transfer to an address of ours. */
export interface FoundPayment {
  txHash: string;
  logIndex: number;
  transactionIndex: number;
  blockNumber: number;
  blockTime: Date;
  valueMicroUsdt: bigint;
  /** The node that has the block and denies it; null where none does. */
  deniedBy: string | null;
  owner: AddressOwner;
}

/** The deposit that an address was given out for. */
export interface AddressOwner {
  depositId: string;
  partnerId: string;
  mode: Mode;
}

/** @returns the deposits whose addresses are among these, by the address' 20 bytes in hex. One statement, however many. */
export async function findOwners(
  em: EntityManager,
  network: TronNetwork,
  addressHashes: Iterable<string>,
): Promise<Map<string, AddressOwner>> {
  const wanted = [...new Set(addressHashes)].map((hash) => `\\x${hash}`);
  if (wanted.length === 0) return new Map();
  const rows = await query<{ hash: string; id: string; partner_id: string; mode: Mode }>(
    em,
    `SELECT encode(address_hash, 'hex') AS hash, id, partner_id, mode FROM deposit
     WHERE network = $1 AND address_hash = ANY ($2::bytea[])`,
    [network, wanted],
  );
  return new Map(
    rows.map(({ hash, id, partner_id, mode }) => [hash, { depositId: id, partnerId: partner_id, mode }]),
  );
}

/** The blocks of a chain that follow `after`, up to `last`, and what is ours of them. */
export interface RunOfBlocks {
  network: TronNetwork;
  /** Where the scan stood when they were read. */
  after: { number: number; hash: string | null };
  last: { number: number; hash: string; time: Date };
  payments: readonly FoundPayment[];
}

/** How many deposits it changed, or payments it found. */
export interface TakenBlocks {
  found: number;
  expired: number;
  /** Those whose payment was seen in a block that did not last. */
  awaitingAgain: number;
}

/** The scan stands elsewhere: another process was faster, or a rescan was asked for. Read where, and go on from there. */
export class CursorMoved extends Error {
  override name = 'CursorMoved';
}

/**
 * Takes a run of blocks: records the payments in it, each once however often it is found, moves the cursor, and lets those
 * deposits expire that the chain's own time has passed. It waits for no account and no deposit, so nobody's rows can hold up
 * what arrives for others; what a payment is worth is decided later, by creditPayments.
 * @throws CursorMoved and nothing has changed.
 */
export function takeBlocks(orm: Orm, run: RunOfBlocks): Promise<TakenBlocks> {
  const { network, last, payments } = run;
  return transaction(orm, async (tx) => {
    await moveCursor(tx, run);
    const found = payments.length === 0 ? 0 : await record(tx, network, payments);
    const awaitingAgain = await count(tx, AWAIT_AGAIN, [network, last.number]);
    const expired = await count(tx, EXPIRE, [network, last.time]);
    return { found, awaitingAgain, expired };
  });
}

/** First, so that of two scans the second finds it moved before it does anything. */
async function moveCursor(tx: EntityManager, { network, after, last }: RunOfBlocks): Promise<void> {
  const moved = await query(
    tx,
    `UPDATE chain_scan SET block_number = $4, block_hash = $5, block_time = $6,
       furthest_block_number = greatest(furthest_block_number, $4)
     WHERE network = $1 AND block_number = $2 AND block_hash IS NOT DISTINCT FROM $3 RETURNING network`,
    [network, after.number, after.hash, last.number, last.hash, last.time],
  );
  if (moved.length === 0) {
    throw new CursorMoved(`the scan of ${network} does not stand at block ${after.number} any more`);
  }
}

function record(tx: EntityManager, network: TronNetwork, payments: readonly FoundPayment[]): Promise<number> {
  const rows = payments.map(({ owner, ...payment }) => ({
    tx_hash: payment.txHash,
    log_index: payment.logIndex,
    deposit_id: owner.depositId,
    partner_id: owner.partnerId,
    mode: owner.mode,
    value_micro_usdt: payment.valueMicroUsdt.toString(),
    block_number: payment.blockNumber,
    transaction_index: payment.transactionIndex,
    block_time: payment.blockTime,
    denied_by: payment.deniedBy,
  }));
  return count(tx, RECORD, [network, JSON.stringify(rows)]);
}

async function count(tx: EntityManager, statement: string, values: unknown[]): Promise<number> {
  const [row] = await query<{ count: number }>(tx, statement, values);
  return row?.count ?? 0;
}

const RECORD = `
  WITH recorded AS (
    INSERT INTO deposit_payment (network, tx_hash, log_index, deposit_id, partner_id, mode, value_micro_usdt,
      block_number, transaction_index, block_time, denied_by)
    SELECT $1, f.* FROM json_to_recordset($2) AS f (tx_hash text, log_index integer, deposit_id text, partner_id text,
      mode text, value_micro_usdt numeric, block_number bigint, transaction_index integer, block_time timestamptz,
      denied_by text)
    ON CONFLICT (network, tx_hash, log_index) DO NOTHING
    RETURNING 1)
  SELECT count(*)::int FROM recorded`;

// Those that somebody holds have their turn with the next run.
const AWAIT_AGAIN = `
  WITH due AS (
    SELECT d.id FROM deposit d
    WHERE d.network = $1 AND d.status = 'confirming' AND d.seen_block_number <= $2
      AND NOT EXISTS (SELECT FROM deposit_payment p WHERE p.deposit_id = d.id)
    FOR NO KEY UPDATE SKIP LOCKED
  ), changed AS (
    UPDATE deposit d SET status = 'awaiting_payment', seen_block_number = NULL, version = version + 1, changed_at = now()
    FROM due WHERE d.id = due.id RETURNING 1)
  SELECT count(*)::int FROM changed`;

const EXPIRE = `
  WITH due AS (
    SELECT d.id FROM deposit d
    WHERE d.network = $1 AND d.status = 'awaiting_payment' AND d.expires_at < $2
      AND NOT EXISTS (SELECT FROM deposit_payment p WHERE p.deposit_id = d.id)
    ORDER BY d.expires_at LIMIT ${MOST_EXPIRED} FOR NO KEY UPDATE SKIP LOCKED
  ), changed AS (
    UPDATE deposit d SET status = 'expired', version = version + 1, changed_at = now()
    FROM due WHERE d.id = due.id RETURNING 1)
  SELECT count(*)::int FROM changed`;
