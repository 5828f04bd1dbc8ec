import type Koa from 'koa';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { readAccountClock } from '../../accounts/test-clock.ts';
import { type AccountClock, lastAdvanceMs, shownTime } from '../../domain/account-clock.ts';
import { notifyTestClock } from '../../platform/db/notifications.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { describeError } from '../../platform/process/describe-error.ts';
import { asAccount } from '../../platform/process/work-context.ts';
import type { RequestState } from './log-request.ts';

/** Other processes tell of an advance at once; a notification can be lost. */
const CACHE_MS = 2_000;

/** The clocks of accounts that use this process, for the header Test-Clock. Nothing is decided on them. */
export interface TestClocks {
  /** Null if it was never advanced. */
  of(partnerId: string): Promise<AccountClock>;
  /**
   * Reads a clock that this process has advanced, and tells the other processes. Never throws: the advance is
   * committed.
   */
  advanced(partnerId: string): Promise<void>;
  /** Another process has advanced it. */
  forget(partnerId: string): void;
}

export function openTestClocks(orm: Orm, logger: Logger): TestClocks {
  const known = new LRUCache<string, { clock: AccountClock; readAtMs: number }>({ max: 10_000 });
  const underWay = new Map<string, Promise<AccountClock>>();
  const read = async (partnerId: string): Promise<AccountClock> => {
    const readAtMs = performance.now();
    const clock = await readAccountClock(orm.em.fork(), partnerId);
    const other = known.get(partnerId);
    // A read that began before an advance may end after one that shows it.
    if (other !== undefined && lastAdvanceMs(other.clock) > lastAdvanceMs(clock)) return other.clock;
    known.set(partnerId, { clock, readAtMs });
    return clock;
  };
  /** One read for all responses that end meanwhile, in the account's own turns. */
  const readOnce = (partnerId: string): Promise<AccountClock> => {
    const started = underWay.get(partnerId) ?? asAccount({ partnerId, mode: 'test' }, () => read(partnerId));
    underWay.set(partnerId, started);
    return started.finally(() => underWay.delete(partnerId));
  };
  return {
    of: async (partnerId) => {
      const found = known.get(partnerId);
      const isFresh = found !== undefined && performance.now() - found.readAtMs < CACHE_MS;
      return isFresh ? found.clock : readOnce(partnerId);
    },
    advanced: async (partnerId) => {
      try {
        await read(partnerId);
        await notifyTestClock(orm, partnerId);
      } catch (error) {
        logger.warn(
          { partnerId, error: describeError(error) },
          'could not tell other processes of an advance',
        );
      }
    },
    forget: (partnerId) => known.delete(partnerId),
  };
}

/**
 * Adds the header Test-Clock to responses to test keys of accounts whose clock was advanced
 * (docs/partners/testing.md).
 */
export const showTestClock =
  ({ of }: TestClocks): Koa.Middleware<RequestState> =>
  async (ctx, next) => {
    await next();
    const { partnerId, mode } = ctx.state.logFields;
    if (mode !== 'test' || partnerId === undefined) return;
    // If the database is away, the response says so, and has no such header.
    const clock = await of(partnerId).catch(() => null);
    if (clock !== null) ctx.set('Test-Clock', shownTime(clock).toISOString());
  };
