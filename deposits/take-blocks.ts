import { sql } from 'kysely';
import type { ChainName, NodeSays } from '../domain/deposit.ts';
import type { Mode } from '../domain/mode.ts';
import type { Orm } from '../platform/db/orm.ts';
import { type Reader, readStatement, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';

/** A transfer to one of our addresses. */
export interface FoundPayment {
  txHash: string;
  logIndex: number;
  transactionIndex: number;
  blockNumber: number;
  blockTime: Date;
  valueMicroUsdt: bigint;
  owner: AddressOwner;
}

/** A transfer to one of our addresses that too few nodes show. */
export interface UnconfirmedFound extends FoundPayment {
  blockHash: string;
  says: NodeSays[];
}

/** The deposit that an address was given out for. */
interface AddressOwner {
  depositId: string;
  partnerId: string;
  mode: Mode;
}

/**
 * @returns the deposits whose addresses are among these, by the address' 20 bytes in hex. One statement,
 * however many.
 */
export async function findOwners(
  em: Reader,
  network: ChainName,
  addressHashes: Iterable<string>,
): Promise<Map<string, AddressOwner>> {
  const wanted = [...new Set(addressHashes)].map((hash) => `\\x${hash}`);
  if (wanted.length === 0) return new Map();
  const rows = await selectOwners(em, { network, hashes: wanted });
  return new Map(
    rows.map(({ hash, id, partner_id, mode }) => [hash, { depositId: id, partnerId: partner_id, mode }]),
  );
}

/** The blocks of a chain after `after`, up to `last`, and the payments to us in them. */
export interface RunOfBlocks {
  network: ChainName;
  /** The position of the scan when they were read. */
  after: { number: number; hash: string | null };
  last: { number: number; hash: string; time: Date };
  payments: readonly FoundPayment[];
  /** Those that too few nodes show. */
  unconfirmed: readonly UnconfirmedFound[];
}

/** How many payments were found and deposits changed. */
interface TakenBlocks {
  found: number;
  /** Deposits with a payment that too few nodes show. */
  confirming: number;
  /** Deposits whose payment was seen in a block that the chain dropped. */
  awaitingAgain: number;
}

/**
 * The cursor has moved: another process was faster, or a rescan was requested. Read it again and continue
 * from there.
 */
export class CursorMoved extends Error {
  override name = 'CursorMoved';
}

/**
 * Takes a run of blocks: records each payment in it exactly once, and moves the cursor. It waits for no lock
 * on an account or a deposit, so nobody's rows can delay what arrives for others. creditPayments judges the
 * payments later, and expireDeposits expires the deposits whose deadline the cursor has passed.
 * @throws CursorMoved if nothing was changed because the cursor is elsewhere
 */
export function takeBlocks(orm: Orm, run: RunOfBlocks): Promise<TakenBlocks> {
  const { network, after, last, payments, unconfirmed } = run;
  return transaction(orm, async (tx) => {
    // First of all, so that the second of two concurrent scans finds that it has moved before it does
    // anything.
    const moved = await moveCursor(tx, {
      network,
      afterNumber: String(after.number),
      afterHash: after.hash,
      number: String(last.number),
      hash: last.hash,
      time: last.time,
    });
    if (moved.length === 0) {
      throw new CursorMoved(`the scan of ${network} is no longer at block ${after.number}`);
    }
    // A rescan reads these blocks anew, and may find others in their place.
    await dropUnconfirmed(tx, { network, after: String(after.number), last: String(last.number) });
    const rows = JSON.stringify(payments.map(toPaymentRow));
    const found = payments.length === 0 ? 0 : toCount(await record(tx, { network, rows }));
    const waiting = JSON.stringify(unconfirmed.map(toUnconfirmedRow));
    const confirming =
      unconfirmed.length === 0 ? 0 : toCount(await keepUnconfirmed(tx, { network, rows: waiting }));
    const awaitingAgain = toCount(await awaitAgain(tx, { network, number: String(last.number) }));
    return { found, confirming, awaitingAgain };
  });
}

const toCount = ([row]: { count: number }[]): number => row?.count ?? 0;

function toPaymentRow({ owner, ...payment }: FoundPayment) {
  return {
    tx_hash: payment.txHash,
    log_index: payment.logIndex,
    deposit_id: owner.depositId,
    partner_id: owner.partnerId,
    mode: owner.mode,
    value_micro_usdt: payment.valueMicroUsdt.toString(),
    block_number: payment.blockNumber,
    transaction_index: payment.transactionIndex,
    block_time: payment.blockTime,
  };
}

function toUnconfirmedRow({ blockHash, says, ...payment }: UnconfirmedFound) {
  return { ...toPaymentRow(payment), block_hash: blockHash, says };
}

type OfChain = { network: ChainName };

const selectOwners = readStatement(
  (db, { network, hashes }: OfChain & { hashes: string[] }) =>
    db
      .selectFrom('deposit')
      .select(['id', 'partner_id', 'mode', sql<string>`encode(address_hash, 'hex')`.as('hash')])
      .where('network', '=', network)
      .where('address_hash', '=', sql<Buffer>`any(${hashes}::bytea[])`),
  { acrossTenants: 'chain' },
);

type Move = OfChain & {
  afterNumber: string;
  afterHash: string | null;
  number: string;
  hash: string;
  time: Date;
};

const moveCursor = writeStatement((db, { network, afterNumber, afterHash, number, hash, time }: Move) =>
  db
    .updateTable('chain_scan')
    .set({ block_number: number, block_hash: hash, block_time: time })
    .set({ furthest_block_number: sql`greatest(furthest_block_number, ${number})` })
    .where('network', '=', network)
    .where('block_number', '=', afterNumber)
    .where('block_hash', 'is not distinct from', afterHash)
    .returning('network'),
);

// Written out for the recordset.
const record = writeStatement(
  (_, { network, rows }: OfChain & { rows: string }) => sql<{ count: number }>`
    WITH recorded AS (
    INSERT INTO deposit_payment (network, tx_hash, log_index, deposit_id, partner_id, mode, value_micro_usdt,
      block_number, transaction_index, block_time)
    SELECT ${network}, f.* FROM json_to_recordset(${rows}) AS f (tx_hash text,
      log_index integer, deposit_id text,
      partner_id text, mode text, value_micro_usdt numeric, block_number bigint, transaction_index integer,
      block_time timestamptz)
    ON CONFLICT (network, tx_hash, log_index) DO NOTHING
    RETURNING 1)
    SELECT count(*)::int FROM recorded`,
  { acrossTenants: 'chain' },
);

const dropUnconfirmed = writeStatement(
  (db, { network, after, last }: OfChain & { after: string; last: string }) =>
    db
      .deleteFrom('unconfirmed_payment')
      .where('network', '=', network)
      .where('block_number', '>', after)
      .where('block_number', '<=', last),
  { acrossTenants: 'chain' },
);

// Written out for the recordset. A payment that was recorded before, and is found again by a rescan, stays as
// it is. A deposit that another transaction holds is shown as before.
const keepUnconfirmed = writeStatement(
  (_, { network, rows }: OfChain & { rows: string }) => sql<{ count: number }>`
    WITH kept AS (
      INSERT INTO unconfirmed_payment (network, tx_hash, log_index, deposit_id, partner_id,
        mode, value_micro_usdt, block_number, block_hash, transaction_index, block_time, says)
      SELECT ${network}, f.* FROM json_to_recordset(${rows}) AS f (tx_hash text,
        log_index integer, deposit_id text,
        partner_id text, mode text, value_micro_usdt numeric, block_number bigint, block_hash text,
        transaction_index integer, block_time timestamptz, says jsonb)
      WHERE NOT EXISTS (SELECT FROM deposit_payment p
        WHERE p.network = ${network} AND p.tx_hash = f.tx_hash AND p.log_index = f.log_index)
      ON CONFLICT DO NOTHING
      RETURNING deposit_id, block_number
    ), due AS (
      SELECT d.id, (SELECT max(k.block_number) FROM kept k WHERE k.deposit_id = d.id) AS block_number
        FROM deposit d
      WHERE d.id IN (SELECT deposit_id FROM kept) AND d.status = 'awaiting_payment'
      FOR NO KEY UPDATE OF d SKIP LOCKED
    ), changed AS (
      UPDATE deposit d SET status = 'confirming', seen_block_number = due.block_number, version = version + 1,
        changed_at = now()
      FROM due WHERE d.id = due.id RETURNING d.id)
    SELECT count(*)::int FROM changed`,
  { acrossTenants: 'chain' },
);

const COUNT = sql<number>`count(*)::int`.as('count');

/** The columns that every change of a deposit updates. */
const CHANGED = { version: sql<number>`version + 1`, changed_at: sql<string>`now()` };

const NO_PAYMENT = sql<boolean>`NOT EXISTS (SELECT FROM deposit_payment p WHERE p.deposit_id = deposit.id)
  AND NOT EXISTS (SELECT FROM unconfirmed_payment u WHERE u.deposit_id = deposit.id)`;

// Deposits that another transaction holds are left to the next run.
const awaitAgain = writeStatement(
  (db, { network, number }: OfChain & { number: string }) =>
    db
      .with('due', (due) =>
        due
          .selectFrom('deposit')
          .select('id')
          .where('network', '=', network)
          .where('status', '=', sql.lit('confirming'))
          .where('seen_block_number', '<=', number)
          .where(NO_PAYMENT)
          .forNoKeyUpdate()
          .skipLocked(),
      )
      .with('changed', (changed) =>
        changed
          .updateTable('deposit as d')
          .from('due')
          .set({ status: 'awaiting_payment', seen_block_number: null, ...CHANGED })
          .whereRef('d.id', '=', 'due.id')
          .returning('d.id'),
      )
      .selectFrom('changed')
      .select(COUNT),
  { acrossTenants: 'chain' },
);
