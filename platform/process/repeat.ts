import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { describeError } from './describe-error.ts';

export interface Repetition {
  stop(): Promise<void>;
}

/**
 * Runs `work` repeatedly, each time `intervalMs` after it last ended. A failure is logged and does not end the repetition.
 * @param work is awaited by {@link Repetition.stop}, so long work must end early once `stopping` is aborted
 */
export function repeat(
  what: string,
  intervalMs: number,
  logger: Logger,
  work: (stopping: AbortSignal) => Promise<void>,
): Repetition {
  const stopping = new AbortController();
  const running = (async () => {
    while (!stopping.signal.aborted) {
      try {
        await work(stopping.signal);
      } catch (error) {
        logger.error({ error: describeError(error) }, `${what} failed; trying again`);
      }
      await sleep(intervalMs, undefined, { signal: stopping.signal }).catch((error) => {
        if (!stopping.signal.aborted) throw error;
      });
    }
  })();
  return {
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}
