import type { Logger } from 'pino';
import { notifyEvents } from '../platform/db/notifications.ts';
import type { Orm } from '../platform/db/orm.ts';
import { describeError } from '../platform/process/describe-error.ts';
import { type Repetition, repeat } from '../platform/process/repeat.ts';
import { asAccount, asService } from '../platform/process/work-context.ts';
import { type DueAuthorization, expireAuthorizations, findDueAuthorizations } from './expire.ts';

const INTERVAL_MS = 1_000;
/**
 * Found at once; and how many of an account share a transaction, which locks their cards for some
 * milliseconds.
 */
const MAX_FOUND = 400;
const MAX_TOGETHER = 100;
/** How long one is left alone whose card was locked, and one that could not be expired. */
const LOCKED_PAUSE_MS = 1_000;
const FAILED_PAUSE_MS = 60_000;

interface ExpiryDependencies {
  orm: Orm;
  logger: Logger;
}

/**
 * Expires authorizations whose time is over. They are rows with a time, so those of an outage are found as
 * any others. Accounts are served side by side, a hundred of each at a time. One that can't be expired delays
 * no other.
 */
export function startExpiring(dependencies: ExpiryDependencies): Repetition {
  return repeat('expiring authorizations', INTERVAL_MS, dependencies.logger, createExpiry(dependencies));
}

/** @returns what expires all that are due, until there are no more or it is told to stop */
export function createExpiry(
  { orm, logger }: ExpiryDependencies,
  nowMs = () => performance.now(),
): (stopping: AbortSignal) => Promise<void> {
  /** The ids that are left alone, and until when, by nowMs(). */
  const pausedUntil = new Map<string, number>();

  const pause = (ids: readonly string[], pauseMs: number) => {
    for (const id of ids) pausedUntil.set(id, nowMs() + pauseMs);
  };

  async function expireTogether(due: readonly DueAuthorization[]): Promise<void> {
    const [first] = due;
    if (first === undefined) return;
    const tenant = { partnerId: first.partner_id, mode: first.mode };
    const ended = await asAccount(tenant, () => expireAuthorizations(orm, tenant, due));
    const others = due.map(({ id }) => id).filter((id) => !ended.includes(id));
    pause(others, LOCKED_PAUSE_MS);
  }

  /** Never throws. What fails together is tried alone, so that only the one at fault has to wait. */
  async function expireAccount(due: readonly DueAuthorization[]): Promise<void> {
    for (let start = 0; start < due.length; start += MAX_TOGETHER) {
      const together = due.slice(start, start + MAX_TOGETHER);
      try {
        await expireTogether(together);
      } catch {
        for (const one of together) {
          await expireTogether([one]).catch((error: unknown) => {
            pause([one.id], FAILED_PAUSE_MS);
            logger.error(
              { authorizationId: one.id, error: describeError(error) },
              'could not expire an authorization; trying again in a minute',
            );
          });
        }
      }
    }
  }

  return async (stopping) => {
    let found: DueAuthorization[];
    do {
      const now = nowMs();
      for (const [id, until] of pausedUntil) if (until <= now) pausedUntil.delete(id);
      const except = [...pausedUntil.keys()];
      found = await asService('authorizations', () =>
        findDueAuthorizations(orm.em.fork(), { except, limit: MAX_FOUND }),
      );
      const accounts = Map.groupBy(found, ({ partner_id: partnerId, mode }) => `${mode}/${partnerId}`);
      await Promise.all([...accounts.values()].map(expireAccount));
      if (found.length > 0) await notifyEvents(orm);
    } while (found.length === MAX_FOUND && !stopping.aborted);
  };
}
