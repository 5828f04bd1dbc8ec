import {
  ActivityFailure,
  ApplicationFailure,
  continueAsNew,
  isCancellation,
  proxyActivities,
  setCurrentDetails,
  sleep,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type { ScanChainActivities, ScanProgress } from '../deposits/scan-activities.ts';
import { MAX_LAG_SECONDS } from '../domain/scan-lag.ts';
import { needsAttentionAttribute } from '../platform/temporal/search-attributes.ts';
import type { ScanChainInput } from './messages.ts';

/** Each adds 6 events to the history and lasts 20 s. */
const MAX_ROUNDS = 150;
const PAUSE_AFTER_FAILURE = '10s';

/**
 * A worker that died or froze stops sending heartbeats. Another worker's round then continues from the
 * committed block.
 */
const { scanBlocks } = proxyActivities<ScanChainActivities>({
  summary: 'read solid blocks for 20 s',
  startToCloseTimeout: '90s',
  heartbeatTimeout: '5s',
  retry: { initialInterval: '1s', backoffCoefficient: 1, maximumAttempts: 3 },
});

/**
 * Reads a chain's solid blocks in order, indefinitely. Its position is in the database and advances in the
 * same transaction as the payments found, so terminating the workflow loses nothing, and a worker starts it
 * again within seconds.
 */
export async function scanChain({ network }: ScanChainInput): Promise<{ outcome: 'not_configured' }> {
  show(`Reading the solid blocks of ${network}.`, needsAttentionShown());
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const report = await scanBlocks(network).catch(toFailed);
    if (report.state === 'failed') {
      show(
        `**The scan is failing**, so no deposit on ${network} is credited: ${report.why}. It is retried. ${WHAT_TO_DO}`,
        true,
      );
      if (!report.timedOut) await sleep(PAUSE_AFTER_FAILURE, { summary: 'until the next try' });
    } else if (report.state === 'not_configured') {
      show(`This installation does not read ${network}: no worker has it as TRON_NETWORK.`, false);
      return { outcome: 'not_configured' };
    } else if (report.state === 'idle') {
      show(`Waiting for the first deposit address on ${network}. Nothing can have been paid before.`, false);
    } else {
      show(describeScan(network, report), isBehind(report));
    }
  }
  return continueAsNew<typeof scanChain>({ network });
}

interface Failed {
  state: 'failed';
  /** Why it failed, as a log would say it. */
  why: string;
  /** Whether its worker is gone, so that another one can go on without a pause. */
  timedOut: boolean;
}

function toFailed(error: unknown): Failed {
  if (!(error instanceof ActivityFailure) || isCancellation(error)) throw error;
  const { cause } = error;
  if (cause instanceof ApplicationFailure)
    return { state: 'failed', why: `${cause.type ?? 'Error'}: ${cause.message}`, timedOut: false };
  return { state: 'failed', why: 'the worker has stopped sending heartbeats', timedOut: true };
}

const isBehind = ({ lag, unreadable }: ScanProgress): boolean =>
  unreadable !== null || (lag.seconds ?? 0) > MAX_LAG_SECONDS;

const needsAttentionShown = (): boolean =>
  workflowInfo().typedSearchAttributes.get(needsAttentionAttribute) ?? false;

function show(details: string, needsAttention: boolean): void {
  setCurrentDetails(details);
  if (needsAttention !== needsAttentionShown())
    upsertSearchAttributes([{ key: needsAttentionAttribute, value: needsAttention }]);
}

/** Paragraphs, as Markdown. */
function describeScan(network: string, report: ScanProgress): string {
  const { block, lag, solidBlockNumber, node, nodes, unreadable } = report;
  const where =
    block === null
      ? `No block of ${network} could be read yet.`
      : `Scanned up to block ${block.number} of ${network}, produced at ${block.time ?? 'an unknown time'}.`;
  const parts = [where];
  const behind: string[] = [];
  if (lag.seconds !== null) behind.push(`${lag.seconds} s`);
  if (lag.blocks !== null) behind.push(`${lag.blocks} blocks`);
  if (behind.length > 0) {
    parts.push(`Behind by ${behind.join(', ')}. The newest solid block is ${solidBlockNumber ?? 'unknown'}.`);
  }
  if (unreadable !== null) {
    parts.push(`**No block can be read at the moment:** ${unreadable}. ${WHAT_TO_DO}`);
  } else if (isBehind(report)) {
    parts.push(`**It is catching up.** ${WHAT_TO_DO}`);
  }
  if (node !== null) parts.push(`Reads from ${node}.`);
  const states = nodes.map(({ name, state, problem }) =>
    problem === null ? `- ${name}: ${state}` : `- ${name}: ${state} (${problem})`,
  );
  parts.push(states.join('\n'));
  return parts.join('\n\n');
}

const WHAT_TO_DO =
  "It finds payments as it reaches their blocks. Check TRON_NODE_URLS and the worker's log; `npm run operator -- tron status` " +
  'has the same. There is no signal to send.';
