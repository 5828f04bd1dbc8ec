import type { ChainName, NodeState } from '../domain/deposit.ts';
import { Refusal } from '../domain/refusal.ts';
import type { OperatorConfig } from '../platform/config/operator.ts';
import type { Orm } from '../platform/db/orm.ts';
import { scanChainWorkflowId } from '../workflows/messages.ts';
import { readScanStates } from './chain-scan.ts';

/** How far a chain has been scanned. */
export interface ScanResource {
  object: 'chain_scan';
  network: ChainName;
  /** The last block that was scanned. */
  block: number;
  /** Null right after `tron rescan`. */
  block_time: string | null;
  /** The newest solid block that a node has reported. */
  solid_block: number | null;
  lag_blocks: number | null;
  lag_seconds: number | null;
  /** The node that the last block came from. */
  node: string | null;
  nodes: NodeState[];
  /** When the scan last reported. */
  checked_at: string | null;
  workflow_id: string;
}

/** The scan of every chain that has had deposit addresses. */
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
 * The scan that `--network`, else TRON_NETWORK, names; if neither does, the only one.
 * @throws Refusal if the chain has not been scanned yet, or there are several and none is named.
 */
export async function readScan(
  orm: Orm,
  named: ChainName | null,
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
