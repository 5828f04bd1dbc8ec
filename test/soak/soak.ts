import { Difference } from '../model/difference.ts';
import { play } from '../model/play.ts';
import type { ScriptSize } from '../model/script.ts';
import { drawScript } from '../model/seed.ts';
import { newTally, operationsOf } from '../model/tally.ts';
import { compareAtTheEnd } from './compare.ts';
import { drawKills } from './draw-kills.ts';
import { startKilling } from './kills.ts';
import { type Receivers, startReceivers } from './receivers.ts';
import { makeReport, type Report } from './report.ts';
import { type SoakedStack, startSoakedStack } from './soaked-stack.ts';

export interface SoakOptions {
  kills: number;
  seed: number;
  /** The load ends after this time, even with fewer kills. */
  longestMs: number;
  size: ScriptSize;
  /** Keeps logs and data even if there is no difference. */
  keep: boolean;
  progress(line: string): void;
  /** The time between progress lines. */
  progressEveryMs: number;
}

/**
 * Runs the service under the local stack's supervisors with the model's load, kills one process after the other, and compares
 * everything its clients saw with what it says at the end.
 */
export async function soak(options: SoakOptions): Promise<Report> {
  const { progress } = options;
  const receivers = await startReceivers();
  progress('starting the stack');
  const stack = await startSoakedStack(receivers);
  let report: Report | undefined;
  try {
    report = await soakStack(stack, receivers, options);
    return report;
  } finally {
    const keep = options.keep || report === undefined || report.differences.length > 0;
    if (keep) progress(`its logs and its data are kept in ${stack.dataDir}`);
    await stack.stop(keep);
    await receivers.stop();
  }
}

async function soakStack(stack: SoakedStack, receivers: Receivers, options: SoakOptions): Promise<Report> {
  const { seed, progress } = options;
  const startedAt = Date.now();
  const tally = newTally();
  const differences: Difference[] = [];
  const stopping = new AbortController();
  const killing = startKilling(stack, drawKills(seed, options.kills), stopping.signal);
  const { kills } = killing;
  stack.service.pause = killing.pause;
  let isKilling = true;
  const showProgress = () => {
    const back = kills.filter(({ recoveredAfterMs }) => recoveredAfterMs !== undefined).length;
    const seconds = Math.round((Date.now() - startedAt) / 1_000);
    const found = differences.length + receivers.differences.length;
    progress(
      `${seconds} s: ${operationsOf(tally)} operations, ${kills.length} of ${options.kills} kills, ${back} back, ` +
        `${receivers.accepted.size} events received, ${found} differences`,
    );
  };
  const ticking = setInterval(showProgress, options.progressEveryMs);
  const ended = killing.ended
    .catch((error: Error) => void differences.push(new Difference(error.message)))
    .finally(() => {
      isKilling = false;
    });
  const isOver = () => !isKilling || Date.now() - startedAt > options.longestMs;
  const playAll = async () => {
    for (let script = seed; !isOver(); script++) {
      await play(stack.service, drawScript(script, options.size), tally, {
        kills: () => false,
        isOver,
        concludes: true,
      });
    }
  };
  try {
    // If a process does not come back, the clients would only wait.
    const playing = playAll();
    await Promise.race([playing, killing.ended.then(() => playing)]);
  } catch (error) {
    if (!(error instanceof Difference)) throw error;
    differences.push(error);
  } finally {
    stopping.abort();
    await ended;
    clearInterval(ticking);
  }
  showProgress();
  if (differences.length === 0) {
    progress('nothing is killed any more; waiting until all is at rest');
    differences.push(...(await compareAtTheEnd(stack, receivers)));
  }
  differences.push(...receivers.differences);
  const webhooks = { events: receivers.accepted.size, requests: receivers.requests() };
  const { answers } = stack.service;
  return makeReport({ seed, startedAt, tally, kills, answers, webhooks, differences });
}
