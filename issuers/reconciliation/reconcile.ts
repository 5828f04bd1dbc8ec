import { setTimeout as sleep } from 'node:timers/promises';
import type { Orm } from '../../platform/db/orm.ts';
import { describeError } from '../../platform/process/describe-error.ts';
import { compareAll } from './compare-all.ts';
import {
  type Finding,
  readFindingTime,
  readKnownFindings,
  readOldestOpen,
  recordFindings,
} from './findings.ts';
import type { ReconciliationOptions } from './look.ts';

/** How often it says that it goes on, whatever it waits for. */
const GO_ON_EVERY_MS = 5_000;

export interface Reconciliation {
  matched: number;
  /** At most 10,000 altogether. */
  findings: Finding[];
  /** Payments that differed and were corrected to what the network has. */
  corrected: Finding[];
  /** Whether there was more than is noted. */
  isTruncated: boolean;
}

/**
 * Compares cards, movements of money and payments with the network's own lists, and records what differs
 * for `attention list`. What is under way differs for a moment, so only what still differs at a second look
 * counts. Payments are corrected to what the network has; cards and movements are only reported. It can end at any
 * line and be begun again.
 * @throws CardNetworkUnavailable if the lists can't be read: then nothing is recorded
 */
export async function reconcile(options: ReconciliationOptions): Promise<Reconciliation> {
  const { onProgress, logger } = options;
  let going: Promise<unknown> = Promise.resolve();
  const goingOn = setInterval(() => {
    going = onProgress().catch((error: unknown) => {
      logger.warn({ error: describeError(error) }, 'could not note that the reconciliation goes on');
    });
  }, GO_ON_EVERY_MS);
  try {
    return await lookTwice(options);
  } finally {
    clearInterval(goingOn);
    await going;
  }
}

async function lookTwice(options: ReconciliationOptions): Promise<Reconciliation> {
  const { orm, cardNetwork, since, graceMs, signal } = options;
  const startedAt = await readFindingTime(orm);
  const known = await readKnownFindings(orm, cardNetwork);
  const first = await compareAll(options, null);
  let last = first;
  const isNew = [...first.findings.keys()].some((key) => !known.has(key));
  if (first.isTruncated || first.isToCorrect || isNew) {
    await sleep(graceMs, undefined, { signal });
    last = await compareAll(options, first);
  }
  const findings = [...last.findings]
    .filter(([key]) => first.isTruncated || first.findings.has(key))
    .map(([, finding]) => finding);
  const { matched, corrected, isTruncated } = last;
  await recordFindings(orm, { network: cardNetwork, findings, since, startedAt, isTruncated });
  return { matched, findings, corrected, isTruncated };
}

/** How the daily run's result is exported. */
export interface ReconciliationCounts {
  completedAt: string;
  durationSeconds: number;
  matched: number;
  corrected: number;
  /** By the problem. */
  found: Record<Finding['problem'], number>;
}

export function countReconciliation(
  { matched, findings, corrected }: Reconciliation,
  startedAt: Date,
): ReconciliationCounts {
  const count = (problem: Finding['problem']) => findings.filter((it) => it.problem === problem).length;
  return {
    completedAt: new Date().toISOString(),
    durationSeconds: (Date.now() - startedAt.getTime()) / 1_000,
    matched,
    corrected: corrected.length,
    found: {
      missing_here: count('missing_here'),
      missing_at_issuer: count('missing_at_issuer'),
      different: count('different'),
    },
  };
}

const DAY_MS = 86_400_000;

/** Where the period of a daily run begins: a week ago, or with what is open, for a month at most. */
export async function dailyPeriod(orm: Orm, cardNetwork: string): Promise<Date> {
  const weekAgoMs = Date.now() - 7 * DAY_MS;
  const openMs = (await readOldestOpen(orm, cardNetwork))?.getTime() ?? weekAgoMs;
  return new Date(Math.max(Math.min(weekAgoMs, openMs), Date.now() - 30 * DAY_MS));
}
