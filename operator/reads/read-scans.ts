import { readScanStates } from '../../commands/deposits/chain-scan.ts';
import { Refusal } from '../../commands/idempotency/refusal.ts';
import type { OperatorConfig } from '../../config/operator.ts';
import type { NodeState } from '../../db/entities/deposits.ts';
import type { Orm } from '../../db/orm.ts';
import type { TronNetwork } from '../../domain/deposit.ts';
import { scanChainWorkflowId } from '../../workflows/messages.ts';

/** How far a chain has been read. */
export interface ScanResource {
  object: 'chain_scan';
  network: TronNetwork;
  /** The last one that was taken. */
  block: number;
  /** Null right after a rescan was asked for. */
  block_time: string | null;
  /** The newest solid one that a node was heard to have. */
  solid_block: number | null;
  lag_blocks: number | null;
  lag_seconds: number | null;
  /** That the last block came from. */
  node: string | null;
  nodes: NodeState[];
  /** When the scan last said anything. */
  checked_at: string | null;
  workflow_id: string;
}

/** Of every chain that deposits were ever made on. */
export async function readScans(orm: Orm, taskQueuePrefix: string): Promise<ScanResource[]> {
  const states = await readScanStates(orm.em.fork(), null);
  return states.map(({ network, lag, ...state }) => ({
    object: 'chain_scan',
    network,
    block: state.blockNumber,
    block_time: state.blockTime?.toISOString() ?? null,
    solid_block: state.solidBlockNumber,
    lag_blocks: lag.blocks,
    lag_seconds: lag.seconds,
    node: state.node,
    nodes: state.nodes,
    checked_at: state.checkedAt?.toISOString() ?? null,
    workflow_id: scanChainWorkflowId(network, taskQueuePrefix),
  }));
}

/**
 * The scan that is meant.
 * @param named by a flag
 * @throws Refusal where it has not begun, or it can't be told which one is meant.
 */
export async function readScan(
  orm: Orm,
  named: TronNetwork | null,
  { tronNetwork, taskQueuePrefix }: Pick<OperatorConfig, 'tronNetwork' | 'taskQueuePrefix'>,
): Promise<ScanResource> {
  const scans = await readScans(orm, taskQueuePrefix);
  const wanted = named ?? tronNetwork;
  const found = scans.filter(({ network }) => wanted === null || network === wanted);
  if (found.length > 1) {
    const known = found.map(({ network }) => network).join(', ');
    throw new Refusal(`Several chains have been scanned (${known}): choose one with --network.`);
  }
  const [scan] = found;
  if (scan !== undefined) return scan;
  throw new Refusal(
    `${wanted === null ? 'No chain has' : `${wanted} has not`} been scanned yet: a worker with TRON_NETWORK that reaches a node starts the scan once ` +
      'the first deposit address has been given out.',
  );
}
