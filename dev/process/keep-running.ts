import { setTimeout as delay } from 'node:timers/promises';

export interface Running {
  /** Resolves with how it ended. */
  exited: Promise<string>;
  stop(): Promise<void>;
}

interface KeepRunningOptions<R extends Running> {
  name: string;
  /** The signal is aborted if the start no longer has to finish. */
  start: (stopping: AbortSignal) => Promise<R>;
  /** Called when it has ended without being stopped, and when it is back. */
  report: (line: string) => void;
}

const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 30_000;
/** After running for this long, the delays begin again with the first one. */
const HEALTHY_MS = 1_000;

/** Starts something, and starts it again whenever it ends without being stopped, after growing delays. */
export async function keepRunning<R extends Running>(
  options: KeepRunningOptions<R>,
): Promise<Running & { first: R }> {
  const { name, report } = options;
  const stopping = new AbortController();
  const first = await options.start(stopping.signal);
  let current: R | undefined = first;

  const watch = async (): Promise<void> => {
    let delayMs = FIRST_DELAY_MS;
    let readyAt: number | undefined = Date.now();
    let how = await first.exited;
    for (;;) {
      current = undefined;
      if (stopping.signal.aborted) return;
      if (readyAt !== undefined && Date.now() - readyAt > HEALTHY_MS) delayMs = FIRST_DELAY_MS;
      report(`${name} ended; starting it again in ${delayMs / 1000} s: ${how}`);
      if (!(await waits(delayMs, stopping.signal))) return;
      delayMs = Math.min(delayMs * 2, MAX_DELAY_MS);
      readyAt = undefined;
      try {
        const next = await options.start(stopping.signal);
        readyAt = Date.now();
        current = next;
        if (stopping.signal.aborted) return next.stop();
        report(`${name} is running again`);
        how = await next.exited;
      } catch (error) {
        how = error instanceof Error ? error.message : String(error);
      }
    }
  };
  const watched = watch();
  return {
    first,
    exited: watched.then(() => 'stopped'),
    stop: async () => {
      stopping.abort();
      await current?.stop();
      await watched;
    },
  };
}

/** @returns false if the wait was interrupted */
async function waits(delayMs: number, signal: AbortSignal): Promise<boolean> {
  try {
    await delay(delayMs, undefined, { signal });
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}
