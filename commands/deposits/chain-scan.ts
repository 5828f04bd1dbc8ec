import type { EntityManager } from '@mikro-orm/postgresql';
import type { NodeState } from '../../db/entities/deposits.ts';
import { query } from '../../db/sql.ts';
import type { TronNetwork } from '../../domain/deposit.ts';
import { type ScanLag, scanLag } from '../../domain/deposit.ts';

/** Where the scan of a chain stands: the last block that was taken. */
export interface ScanCursor {
  number: number;
  /** Null after a rescan was asked for: whatever block comes next is taken. */
  hash: string | null;
  time: Date | null;
}

/** @returns null where the scan has not begun. */
export async function readCursor(em: EntityManager, network: TronNetwork): Promise<ScanCursor | null> {
  const [row] = await query<{ block_number: string; block_hash: string | null; block_time: string | null }>(
    em,
    'SELECT block_number, block_hash, block_time FROM chain_scan WHERE network = $1',
    [network],
  );
  if (row === undefined) return null;
  const { block_number: number, block_hash: hash, block_time: time } = row;
  return { number: Number(number), hash, time: time === null ? null : new Date(time) };
}

/** How far a chain has been read, and what was last heard of its nodes. */
export interface ScanState {
  network: TronNetwork;
  /** The last one that was taken. */
  blockNumber: number;
  /** Null right after a rescan was asked for. */
  blockTime: Date | null;
  /** The newest solid one that a node was heard to have. */
  solidBlockNumber: number | null;
  lag: ScanLag;
  /** That the last block came from. */
  node: string | null;
  nodes: NodeState[];
  /** When the scan last said anything. */
  checkedAt: Date | null;
}

/** Of every chain whose scan has begun, by name. @param network of this one alone; null: of all */
export async function readScanStates(em: EntityManager, network: TronNetwork | null): Promise<ScanState[]> {
  const rows = await query<ScanRow>(
    em,
    `SELECT network, block_number, block_time, solid_block_number, node, nodes, checked_at FROM chain_scan
     WHERE $1::text IS NULL OR network = $1 ORDER BY network`,
    [network],
  );
  return rows.map((row) => {
    const blockNumber = Number(row.block_number);
    const blockTime = row.block_time === null ? null : new Date(row.block_time);
    const solidBlockNumber = row.solid_block_number === null ? null : Number(row.solid_block_number);
    return {
      ...{ network: row.network, blockNumber, blockTime, solidBlockNumber },
      lag: scanLag({ blockNumber, blockTime, solidBlockNumber }),
      ...{ node: row.node, nodes: row.nodes },
      checkedAt: row.checked_at === null ? null : new Date(row.checked_at),
    };
  });
}

interface ScanRow {
  network: TronNetwork;
  block_number: string;
  block_time: string | null;
  solid_block_number: string | null;
  node: string | null;
  nodes: NodeState[];
  checked_at: string | null;
}

/** When the first address of the chain was given out; null where none was. No payment is older. */
export async function readFirstDepositTime(em: EntityManager, network: TronNetwork): Promise<Date | null> {
  const [first] = await query<{ created_at: string }>(
    em,
    'SELECT created_at FROM deposit WHERE network = $1 ORDER BY id LIMIT 1',
    [network],
  );
  return first === undefined ? null : new Date(first.created_at);
}

/** Begins the scan behind this block, unless another process has begun it. */
export async function beginScan(
  em: EntityManager,
  network: TronNetwork,
  { number, hash, time }: ScanCursor,
): Promise<void> {
  await query(
    em,
    `INSERT INTO chain_scan (network, block_number, block_hash, block_time) VALUES ($1, $2, $3, $4)
     ON CONFLICT (network) DO NOTHING`,
    [network, number, hash, time],
  );
}

/** Records what was last heard of the chain and its nodes, for operators; before the scan has begun there is no place for it. */
export async function recordChainState(
  em: EntityManager,
  network: TronNetwork,
  state: { solidBlockNumber: number | null; node: string | null; nodes: readonly NodeState[] },
): Promise<void> {
  await query(
    em,
    `UPDATE chain_scan SET solid_block_number = coalesce($2, solid_block_number), node = $3, nodes = $4,
       checked_at = clock_timestamp() WHERE network = $1`,
    [network, state.solidBlockNumber, state.node, JSON.stringify(state.nodes)],
  );
}

/** Whether any deposit's payment is still to be seen: only then are blocks worth a look that are not solid. */
export async function isAnyAwaited(em: EntityManager, network: TronNetwork): Promise<boolean> {
  const [row] = await query<{ awaited: boolean }>(
    em,
    `SELECT EXISTS (SELECT FROM deposit WHERE network = $1 AND status = 'awaiting_payment') AS awaited`,
    [network],
  );
  return row?.awaited ?? false;
}

/**
 * Shows deposits as `confirming` whose payment was seen in a block that is not solid yet: a hint, which the scan confirms or
 * takes back when it has passed that block. Those that somebody holds stay as they are.
 * @param seen blocks by the address' 20 bytes in hex
 * @returns how many deposits it changed
 */
export async function markConfirming(
  em: EntityManager,
  network: TronNetwork,
  seen: ReadonlyMap<string, number>,
): Promise<number> {
  const rows = [...seen].map(([hash, blockNumber]) => ({ hash, block_number: blockNumber }));
  const [row] = await query<{ count: number }>(em, MARK, [network, JSON.stringify(rows)]);
  return row?.count ?? 0;
}

/** About 20 minutes of blocks; some 20 are not solid yet. What a node claims beyond them is no hint. */
const MOST_AHEAD = 400;

// What the scan has passed by now it has taken itself.
const MARK = `
  WITH due AS (
    SELECT d.id, s.block_number
    FROM chain_scan c
      JOIN json_to_recordset($2) AS s (hash text, block_number bigint)
        ON s.block_number BETWEEN c.block_number + 1 AND c.block_number + ${MOST_AHEAD}
      JOIN deposit d ON d.network = c.network AND d.address_hash = decode(s.hash, 'hex')
    WHERE c.network = $1 AND d.status = 'awaiting_payment'
    FOR NO KEY UPDATE OF d SKIP LOCKED
  ), changed AS (
    UPDATE deposit d SET status = 'confirming', seen_block_number = due.block_number, version = version + 1, changed_at = now()
    FROM due WHERE d.id = due.id RETURNING 1)
  SELECT count(*)::int FROM changed`;
