import { sql } from 'kysely';
import type { ChainName, NodeState } from '../domain/deposit.ts';
import { Refusal } from '../domain/refusal.ts';
import { type ScanLag, scanLag } from '../domain/scan-lag.ts';
import type { Row } from '../platform/db/entities.ts';
import type { Orm } from '../platform/db/orm.ts';
import { autocommitStatement, type Reader, readStatement, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import { type Operator, recordAudit } from '../requests/operator-context.ts';

/** The position of a chain's scan: the last block that was taken. */
export interface ScanCursor {
  number: number;
  /** Null after a rescan was requested, when any block with the next number is accepted. */
  hash: string | null;
  time: Date | null;
}

/** @returns null if the scan has not started */
export async function readCursor(em: Reader, network: ChainName): Promise<ScanCursor | null> {
  const [row] = await selectScan(em, { network });
  return row === undefined
    ? null
    : { number: Number(row.block_number), hash: row.block_hash, time: toDate(row.block_time) };
}

/** How far a chain has been scanned, and the last known state of its nodes. */
export interface ScanState {
  network: ChainName;
  /** The last one that was taken. */
  blockNumber: number;
  /** Null right after a rescan was requested. */
  blockTime: Date | null;
  /** The newest solid block that any node is known to have. */
  solidBlockNumber: number | null;
  lag: ScanLag;
  /** The node that the last block came from. */
  node: string | null;
  nodes: NodeState[];
  /** When the scan last reported anything. */
  checkedAt: Date | null;
}

/** Every chain whose scan has started, by name. @param network only this one; null for all */
export async function readScanStates(em: Reader, network: ChainName | null): Promise<ScanState[]> {
  const rows = await (network === null ? scans(em, {}) : selectScan(em, { network }));
  return rows.map(toScanState);
}

/** When the first address of the chain was given out; null if none was. No payment is older. */
export async function readFirstDepositTime(em: Reader, network: ChainName): Promise<Date | null> {
  const [first] = await firstDeposit(em, { network });
  return toDate(first?.created_at ?? null);
}

/**
 * Whether any deposit is still waiting for its payment to be seen. If not, there is no need to look at
 * unsolid blocks.
 */
export async function isAnyAwaited(em: Reader, network: ChainName): Promise<boolean> {
  return (await awaited(em, { network })).length > 0;
}

/** Starts the scan after this block, unless another process has started it. */
export async function beginScan(
  orm: Orm,
  network: ChainName,
  { number, hash, time }: ScanCursor,
): Promise<void> {
  await begin(orm, { network, number: String(number), hash, time });
}

/**
 * Records the last known state of the chain and its nodes, for operators. It records nothing before the scan
 * has started.
 */
export async function recordChainState(
  orm: Orm,
  network: ChainName,
  {
    solidBlockNumber,
    node,
    nodes,
  }: Pick<ScanState, 'solidBlockNumber' | 'node'> & { nodes: readonly NodeState[] },
): Promise<void> {
  await recordState(orm, { network, solidBlockNumber, node, nodes: JSON.stringify(nodes) });
}

/**
 * Marks deposits as `confirming` if their payment was seen in a block that is not solid yet. This is a hint,
 * which the scan confirms or takes back once it has passed that block. Deposits that another transaction
 * holds stay as they are.
 * @param seen blocks by the address' 20 bytes in hex
 * @returns how many deposits it changed
 */
export async function markConfirming(
  orm: Orm,
  network: ChainName,
  seen: ReadonlyMap<string, number>,
): Promise<number> {
  const rows = [...seen].map(([hash, blockNumber]) => ({ hash, block_number: blockNumber }));
  return (await confirming(orm, { network, seen: JSON.stringify(rows) })).length;
}

/**
 * Moves a running scan back to a block that it has passed before. Payments that were found stay as they are,
 * and are not recorded again. To undo a rescan from too early a block, rescan from where the scan was.
 * @returns the last block that was ever taken
 * @throws Refusal if the scan has not started, or has not reached that block, since no block may be skipped
 */
export function rescanFrom(
  { orm, actor }: Operator,
  { network, fromBlock }: { network: ChainName; fromBlock: number },
): Promise<{ cameTo: number }> {
  return transaction(orm, async (tx) => {
    const [scan] = await lockScan(tx, { network });
    if (scan === undefined) {
      throw new Refusal(
        `${network} has not been scanned yet: the scan starts on its own, just before the first deposit address was created.`,
      );
    }
    const cameTo = Math.max(Number(scan.block_number), Number(scan.furthest_block_number));
    if (fromBlock > cameTo) {
      throw new Refusal(
        `The scan of ${network} is at block ${cameTo} and will get to ${fromBlock} on its own: give a block up to ${cameTo}.`,
      );
    }
    await moveBack(tx, { network, number: String(fromBlock - 1) });
    recordAudit(tx, { actor, action: 'tron.rescan', subject: network, detail: { fromBlock, cameTo } });
    return { cameTo };
  });
}

/**
 * About 20 minutes of blocks, beside those made since the last one taken. Some 20 blocks are not solid at any
 * time, so a node that claims more is not believed.
 */
const MAX_AHEAD = 400;
const SECONDS_PER_BLOCK = 3;

const SCAN_COLUMNS = [
  'network',
  'block_number',
  'block_hash',
  'block_time',
  'solid_block_number',
  'node',
  'nodes',
  'checked_at',
] as const;

const toDate = (time: string | null): Date | null => (time === null ? null : new Date(time));

function toScanState(row: Row<'chain_scan', (typeof SCAN_COLUMNS)[number]>): ScanState {
  const blockNumber = Number(row.block_number);
  const blockTime = toDate(row.block_time);
  const solidBlockNumber = row.solid_block_number === null ? null : Number(row.solid_block_number);
  return {
    network: row.network,
    blockNumber,
    blockTime,
    solidBlockNumber,
    lag: scanLag({ blockNumber, blockTime, solidBlockNumber }),
    node: row.node,
    nodes: row.nodes,
    checkedAt: toDate(row.checked_at),
  };
}

type OfChain = { network: ChainName };

const scans = readStatement((db) => db.selectFrom('chain_scan').select(SCAN_COLUMNS).orderBy('network'));

const selectScan = readStatement((db, { network }: OfChain) =>
  db.selectFrom('chain_scan').select(SCAN_COLUMNS).where('network', '=', network),
);

const firstDeposit = readStatement(
  (db, { network }: OfChain) =>
    db
      .selectFrom('deposit')
      .select('created_at')
      .where('network', '=', network)
      .orderBy('id')
      .limit(sql.lit(1)),
  { acrossTenants: 'chain' },
);

const awaited = readStatement(
  (db, { network }: OfChain) =>
    db
      .selectFrom('deposit')
      .select('id')
      .where('network', '=', network)
      .where('status', '=', sql.lit('awaiting_payment'))
      .limit(sql.lit(1)),
  { acrossTenants: 'chain' },
);

type Beginning = OfChain & { number: string; hash: string | null; time: Date | null };

const begin = autocommitStatement((db, { network, number, hash, time }: Beginning) =>
  db
    .insertInto('chain_scan')
    .values({ network, block_number: number, block_hash: hash, block_time: time })
    .onConflict((conflict) => conflict.column('network').doNothing()),
);

const recordState = autocommitStatement(
  (db, state: OfChain & { solidBlockNumber: number | null; node: string | null; nodes: string }) =>
    db
      .updateTable('chain_scan')
      .set(({ ref, fn }) => ({
        solid_block_number: fn.coalesce(sql<string>`${state.solidBlockNumber}`, ref('solid_block_number')),
        node: state.node,
        nodes: sql`${state.nodes}`,
        checked_at: sql`clock_timestamp()`,
      }))
      .where('network', '=', state.network),
);

// Written out for the recordset. Blocks that the scan has passed in the meantime need no hint.
const confirming = autocommitStatement(
  (_, { network, seen }: OfChain & { seen: string }) => sql<Row<'deposit', 'id'>>`
    WITH due AS (
      SELECT d.id, s.block_number
      FROM chain_scan c
        JOIN json_to_recordset(${seen}) AS s (hash text, block_number bigint)
          ON s.block_number BETWEEN c.block_number + 1 AND c.block_number + ${sql.lit(MAX_AHEAD)}
            + coalesce(extract(epoch FROM now() - c.block_time) / ${sql.lit(SECONDS_PER_BLOCK)}, 0)
        JOIN deposit d ON d.network = c.network AND d.address_hash = decode(s.hash, 'hex')
      WHERE c.network = ${network} AND d.status = 'awaiting_payment'
      FOR NO KEY UPDATE OF d SKIP LOCKED)
    UPDATE deposit d SET status = 'confirming', seen_block_number = due.block_number,
      version = version + 1, changed_at = now()
    FROM due WHERE d.id = due.id RETURNING d.id`,
  { acrossTenants: 'chain' },
);

const lockScan = writeStatement((db, { network }: OfChain) =>
  db
    .selectFrom('chain_scan')
    .select(['block_number', 'furthest_block_number'])
    .where('network', '=', network)
    .forNoKeyUpdate(),
);

const moveBack = writeStatement((db, { network, number }: OfChain & { number: string }) =>
  db
    .updateTable('chain_scan')
    .set({ block_number: number, block_hash: null, block_time: null })
    .where('network', '=', network),
);
