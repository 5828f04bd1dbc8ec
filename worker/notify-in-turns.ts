import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { describeError } from '../platform/process/describe-error.ts';
import { Waker } from './waker.ts';

interface Notifying {
  /** Call it when there may be workflows to inform. */
  wake(): void;
  stop(): Promise<void>;
}

/**
 * Informs workflows of changes to their rows, a few of each account in turn. If a workflow can't be reached, its change is
 * taken again when its lease has expired, and delays nothing else.
 */
export function notifyInTurns<Change, Account>(options: {
  /** What the workflows are about, for the log. */
  what: string;
  /** How often it looks without being woken. */
  idleMs: number;
  /** Between two rounds of all accounts. */
  roundPauseMs: number;
  logger: Logger;
  /** Leases changes, starting after this account. @returns `last`: the account to continue after; null: that was the last */
  take(after: Account | null): Promise<{ unnotified: Change[]; last: Account | null }>;
  /** Informs one workflow, and then records that. */
  notify(change: Change): Promise<void>;
}): Notifying {
  const { what, idleMs, roundPauseMs, logger, take, notify } = options;
  const waker = new Waker(idleMs);

  let after: Account | null = null;

  async function turn(): Promise<void> {
    const { unnotified, last } = await take(after);
    after = last;
    const ends = await Promise.allSettled(unnotified.map(notify));
    const failed = ends.filter((end) => end.status === 'rejected');
    if (failed.length > 0) {
      logger.warn(
        { count: failed.length, error: describeError(failed[0]?.reason) },
        `could not reach the workflows of ${what}; trying again when their leases expire`,
      );
    }
    if (unnotified.length > 0 && failed.length === unnotified.length) await waker.pause();
    else if (unnotified.length > 0 || last !== null) waker.wake();
    if (unnotified.length > 0 && last === null && !waker.stopped) await sleep(roundPauseMs);
  }

  const notifying = waker.run(turn, (error) =>
    logger.error(
      { error: describeError(error) },
      `could not read which workflows to inform of changed ${what}`,
    ),
  );
  return {
    wake: () => waker.wake(),
    stop: async () => {
      waker.stop();
      await notifying;
    },
  };
}
