import type { Logger } from 'pino';
import type { Metric } from 'prom-client';
import { readFirstDepositTime } from '../commands/deposits/chain-scan.ts';
import type { NodeState } from '../db/entities/deposit.ts';
import type { Orm } from '../db/orm.ts';
import { query } from '../db/sql.ts';
import type { TronNetwork } from '../domain/deposit.ts';
import { type ScanLag, scanLag } from '../domain/scan-lag.ts';
import { type DatabaseGauge, databaseGauges } from './database-gauges.ts';

/** More than these are not counted: how many more changes nothing for whoever reads it. */
const MOST_COUNTED = 10_000;

/** How the scan of a chain stands. */
export interface ScanState {
  network: TronNetwork;
  /** Why it has not begun; null: it has. `first_deposit`: there is nothing to look for yet. */
  waitsFor: 'first_deposit' | 'node' | null;
  /** The last block that was taken, and the newest solid one there is. */
  height: number | null;
  solidHeight: number | null;
  lag: ScanLag;
  /** The one that is read from. */
  node: string | null;
  nodes: NodeState[];
}

export async function readScanState(orm: Orm, network: TronNetwork): Promise<ScanState> {
  const em = orm.em.fork();
  const [row] = await query<ScanRow>(
    em,
    `SELECT block_number, block_time, solid_block_number, node, nodes FROM chain_scan WHERE network = $1`,
    [network],
  );
  if (row === undefined) {
    const firstAt = await readFirstDepositTime(em, network);
    const waitsFor = firstAt === null ? 'first_deposit' : 'node';
    // What has not begun is as far behind as the first payment it could miss.
    const from = { blockNumber: 0, blockTime: firstAt, solidBlockNumber: firstAt === null ? 0 : null };
    return { network, waitsFor, height: null, solidHeight: null, lag: scanLag(from), node: null, nodes: [] };
  }
  const blockNumber = Number(row.block_number);
  const solidBlockNumber = row.solid_block_number === null ? null : Number(row.solid_block_number);
  const blockTime = row.block_time === null ? null : new Date(row.block_time);
  return {
    ...{ network, waitsFor: null, height: blockNumber, solidHeight: solidBlockNumber },
    lag: scanLag({ blockNumber, blockTime, solidBlockNumber }),
    ...{ node: row.node, nodes: row.nodes },
  };
}

interface ScanRow {
  block_number: string;
  block_time: string | null;
  solid_block_number: string | null;
  node: string | null;
  nodes: NodeState[];
}

/** How far the chain has been read, and what of the deposits waits. @param network null: there is no chain to read */
export function createDepositMetrics(orm: Orm, network: TronNetwork | null, logger: Logger): Metric[] {
  const ofScan = (
    name: string,
    help: string,
    value: (scan: ScanState) => number | null,
  ): DatabaseGauge<Read> => ({
    ...{ name: `deposit_scan_${name}`, help, labels: ['network'] },
    measure: ({ scan }) => {
      const measured = scan && value(scan);
      return scan === null || measured === null ? [] : [[[scan.network], measured]];
    },
  });
  return databaseGauges<Read>({
    what: 'what there is of deposits',
    read: async () => ({
      scan: network && (await readScanState(orm, network)),
      waiting: await query<Waiting>(orm.em.fork(), WAITING),
    }),
    gauges: [
      ofScan('lag_seconds', 'How far the reading of the chain is behind it', ({ lag }) => lag.seconds),
      ofScan('lag_blocks', 'How many solid blocks have yet to be read', ({ lag }) => lag.blocks),
      ofScan('height', 'The last block that was read', ({ height }) => height),
      ofScan('solid_height', 'The newest solid block of the chain', ({ solidHeight }) => solidHeight),
      {
        ...{ name: 'deposit_node_state', help: 'How each node of the chain does: 1 for the state it is in' },
        labels: ['node', 'state'],
        measure: ({ scan }) => (scan?.nodes ?? []).map(({ name, state }) => [[name, state], 1]),
      },
      {
        name: 'deposits_waiting',
        help: `Deposits that wait, up to ${MOST_COUNTED}, by what they wait for; for credit: payments`,
        labels: ['for'],
        measure: ({ waiting }) => waiting.map((one) => [[one.for], one.count]),
      },
    ],
    logger,
  });
}

interface Read {
  scan: ScanState | null;
  waiting: Waiting[];
}

interface Waiting {
  for: 'payment' | 'confirmation' | 'credit' | 'review';
  count: number;
}

const waitingIn = (what: Waiting['for'], table: string, status: string) => `
  SELECT '${what}' AS for, count(*)::int AS count
  FROM (SELECT FROM ${table} WHERE status = '${status}' LIMIT ${MOST_COUNTED}) w`;

// Each by an index.
const WAITING = [
  waitingIn('payment', 'deposit', 'awaiting_payment'),
  waitingIn('confirmation', 'deposit', 'confirming'),
  waitingIn('credit', 'deposit_payment', 'found'),
  waitingIn('review', 'deposit', 'needs_review'),
].join(' UNION ALL ');
