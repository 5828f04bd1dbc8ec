import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { describeError } from './describe-error.ts';

export interface Repetition {
  /** Makes it work again at once, or right after what it does now. */
  wake(): void;
  /** Makes it work again within this time, once for all who ask. */
  wakeWithin(ms: number): void;
  /** Aborted by {@link stop}. */
  stopping: AbortSignal;
  stop(): Promise<void>;
}

/**
 * Runs `work` repeatedly, each time when somebody wakes it, or `intervalMs` after it last ended. A failure is
 * logged and does not end the repetition; `work` runs again after `intervalMs`, whoever wakes it.
 * @param work is awaited by {@link Repetition.stop}, so long work must end early once `stopping` is aborted
 */
export function repeat(
  what: string,
  intervalMs: number,
  logger: Logger,
  work: (stopping: AbortSignal) => Promise<void>,
): Repetition {
  const stopping = new AbortController();
  const { signal } = stopping;
  let isWanted = false;
  let wakeUp = () => {};
  let alarm: { timer: NodeJS.Timeout; atMs: number } | null = null;
  const wake = () => {
    isWanted = true;
    wakeUp();
  };
  const running = (async () => {
    while (!signal.aborted) {
      // Several often wake it at the same moment: it works once for all of them.
      await new Promise(setImmediate);
      if (signal.aborted) return;
      isWanted = false;
      try {
        await work(signal);
      } catch (error) {
        logger.error({ error: describeError(error) }, `${what} failed; trying again`);
        await pause(intervalMs, signal);
        continue;
      }
      if (isWanted || signal.aborted) continue;
      const idle = new AbortController();
      wakeUp = () => idle.abort();
      await pause(intervalMs, idle.signal);
    }
  })();
  return {
    stopping: signal,
    wake,
    wakeWithin: (ms) => {
      const atMs = performance.now() + ms;
      if (alarm !== null && alarm.atMs <= atMs) return;
      clearTimeout(alarm?.timer);
      const ring = () => {
        alarm = null;
        wake();
      };
      alarm = { timer: setTimeout(ring, ms).unref(), atMs };
    },
    stop: async () => {
      stopping.abort();
      clearTimeout(alarm?.timer);
      wakeUp();
      await running;
    },
  };
}

/** Waits until the time is over or `signal` is aborted, and doesn't say which. */
export const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  sleep(ms, undefined, { signal }).catch(() => {});
