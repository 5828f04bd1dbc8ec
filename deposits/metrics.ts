import { sql } from 'kysely';
import type { ChainName } from '../domain/deposit.ts';
import { type ScanLag, scanLag } from '../domain/scan-lag.ts';
import type { Orm } from '../platform/db/orm.ts';
import { readStatement } from '../platform/db/sql.ts';
import type { Measured, MeasuredGauge } from '../platform/monitoring/measured-gauges.ts';
import { readFirstDepositTime, readScanStates, type ScanState } from './chain-scan.ts';

/** Counting stops here: for an operator, more makes no difference. */
const MAX_COUNTED = 10_000;

/** How far the chain has been scanned. */
interface ScanProgress {
  network: ChainName;
  /** Why the scan has not started; null if it has. `first_deposit`: there is nothing to look for yet. */
  waitsFor: 'first_deposit' | 'node' | null;
  lag: ScanLag;
  /** Null if it has not started. */
  state: ScanState | null;
}

async function readScanProgress(orm: Orm, network: ChainName): Promise<ScanProgress> {
  const em = orm.em.fork();
  const [state] = await readScanStates(em, network);
  if (state !== undefined) return { network, waitsFor: null, lag: state.lag, state };
  const firstAt = await readFirstDepositTime(em, network);
  if (firstAt === null)
    return { network, waitsFor: 'first_deposit', lag: { seconds: 0, blocks: 0 }, state: null };
  // The lag is the age of the first payment that it could miss.
  const lag = scanLag({ blockNumber: 0, blockTime: firstAt, solidBlockNumber: null });
  return { network, waitsFor: 'node', lag, state: null };
}

/** What `GET /readyz` says of the scan. */
export async function presentScan(orm: Orm, tronNetwork: ChainName): Promise<object> {
  const { network, waitsFor, lag, state } = await readScanProgress(orm, tronNetwork);
  return {
    network,
    waits_for: waitsFor,
    height: state?.blockNumber ?? null,
    lag_blocks: lag.blocks,
    lag_seconds: lag.seconds,
    node: state?.node ?? null,
  };
}

/**
 * How far the chain has been scanned, and which deposits are waiting. @param network null if there is no
 * chain to read
 */
export function depositsMeasured(orm: Orm, network: ChainName | null): Measured<Read> {
  const ofScan = (
    name: string,
    help: string,
    pick: (scan: ScanProgress) => number | null,
  ): MeasuredGauge<Read> => ({
    name: `deposit_scan_${name}`,
    help,
    labels: ['network'],
    samples: ({ scan }) => {
      const value = scan && pick(scan);
      return scan === null || value === null ? [] : [[[scan.network], value]];
    },
  });
  return {
    name: 'deposits',
    source: {
      everyMs: 5_000,
      measure: async () => ({
        scan: network && (await readScanProgress(orm, network)),
        waiting: await countWaiting(orm.em.fork(), {}),
      }),
    },
    gauges: [
      ofScan('lag_seconds', 'How far the scan is behind the chain', ({ lag }) => lag.seconds),
      ofScan('lag_blocks', 'How many solid blocks are left to read', ({ lag }) => lag.blocks),
      ofScan('height', 'The last block that was read', ({ state }) => state?.blockNumber ?? null),
      ofScan(
        'solid_height',
        'The newest solid block of the chain',
        ({ state }) => state?.solidBlockNumber ?? null,
      ),
      {
        name: 'deposit_node_state',
        help: 'The state of each node of the chain: 1 for the current state',
        labels: ['node', 'state'],
        samples: ({ scan }) => (scan?.state?.nodes ?? []).map(({ name, state }) => [[name, state], 1]),
      },
      {
        name: 'deposits_waiting',
        help: `Live deposits that are waiting, up to ${MAX_COUNTED}, by what they wait for; payments, if they wait for credit`,
        labels: ['for'],
        samples: ({ waiting }) => waiting.map((one) => [[one.for], one.count]),
      },
    ],
  };
}

interface Read {
  scan: ScanProgress | null;
  waiting: Waiting[];
}

interface Waiting {
  for: 'payment' | 'confirmation' | 'credit' | 'review';
  count: number;
}

const waitingIn = (what: Waiting['for'], table: 'deposit' | 'deposit_payment', status: string) => sql`
  SELECT ${sql.lit(what)} AS for, count(*)::int AS count
  FROM (SELECT FROM ${sql.table(table)} WHERE status = ${sql.lit(status)} AND mode = 'live'
    LIMIT ${sql.lit(MAX_COUNTED)}) w`;

// Written out, so that an index counts each part.
const countWaiting = readStatement(
  () => sql<Waiting>`
    ${waitingIn('payment', 'deposit', 'awaiting_payment')}
    UNION ALL ${waitingIn('confirmation', 'deposit', 'confirming')}
    UNION ALL ${waitingIn('credit', 'deposit_payment', 'found')}
    UNION ALL ${waitingIn('review', 'deposit', 'needs_review')}`,
  { acrossTenants: 'measurement' },
);
