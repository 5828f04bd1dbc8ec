import { setTimeout as delay } from 'node:timers/promises';
import type { Running } from '../process/keep-running.ts';
import { rotateLog } from '../process/rotate-log.ts';
import { type Child, type StopStep, startChild } from '../process/start-child.ts';
import { crashOf } from './echo-errors.ts';

export interface ServiceOptions {
  name: string;
  /** What Node runs: the entry file, and arguments where it takes any. */
  args: readonly string[];
  env: NodeJS.ProcessEnv;
  logFile: string;
  /** Asked again and again until it says that the service does its work. */
  isReady: () => Promise<boolean>;
  stopSteps: readonly StopStep[];
  onLine: (line: string) => void;
  onSpawn: (name: string, pid: number) => void;
  /** Breaks off the wait for it to be ready. */
  stopping: AbortSignal;
}

const LONGEST_START_MS = 120_000;

/** Starts one of the service's own processes and returns once it does its work. */
export async function startService(options: ServiceOptions): Promise<Running> {
  rotateLog(options.logFile);
  const child = await startChild({ ...options, command: process.execPath });
  try {
    await waitUntilReady(child, options);
  } catch (error) {
    await child.stop(options.stopSteps);
    throw error;
  }
  return { exited: howItEnded(child), stop: () => child.stop(options.stopSteps) };
}

async function waitUntilReady(
  child: Child,
  { isReady, name, logFile, stopping }: ServiceOptions,
): Promise<void> {
  let ended: string | undefined;
  void howItEnded(child).then((how) => {
    ended = how;
  });
  for (const giveUpAt = Date.now() + LONGEST_START_MS; Date.now() < giveUpAt; await delay(100)) {
    if (ended !== undefined) throw new Error(`${name} ended at once, its log is ${logFile}: ${ended}`);
    stopping.throwIfAborted();
    if (await isReady()) return;
  }
  throw new Error(`${name} is not ready after ${LONGEST_START_MS / 1000} s; its log is ${logFile}`);
}

async function howItEnded(child: Child): Promise<string> {
  const how = await child.exited;
  return [how, ...crashOf(child.lastLines())].join('\n');
}
