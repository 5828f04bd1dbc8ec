import type { Logger } from 'pino';
import { describeError } from '../platform/process/describe-error.ts';
import { pause, type Repetition, repeat } from '../platform/process/repeat.ts';

/**
 * Informs workflows of changes to their rows, a few of each account in turn. If a workflow can't be reached,
 * its change is taken again when its lease has expired, and delays nothing else.
 */
export function notifyInTurns<Change, Account>(options: {
  /** What the workflows are about, for the log. */
  what: string;
  /** How often it looks without being woken. */
  idleMs: number;
  /** Between two rounds of all accounts. */
  roundPauseMs: number;
  logger: Logger;
  /**
   * Leases changes, starting after this account. @returns `last`: the account to continue after; null: that
   * was the last
   */
  take(after: Account | null): Promise<{ unnotified: Change[]; last: Account | null }>;
  /** Informs one workflow, and then records that. */
  notify(change: Change): Promise<void>;
}): Repetition {
  const { what, idleMs, roundPauseMs, logger, take, notify } = options;
  let after: Account | null = null;

  const notifying = repeat(`informing workflows of changed ${what}`, idleMs, logger, async (stopping) => {
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
    if (unnotified.length > 0 && failed.length === unnotified.length) await pause(idleMs, stopping);
    else if (unnotified.length > 0 || last !== null) notifying.wake();
    if (unnotified.length > 0 && last === null) await pause(roundPauseMs, stopping);
  });
  return notifying;
}
