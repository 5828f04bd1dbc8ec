import type { Logger } from 'pino';
import {
  type CreditedPayments,
  creditPayments,
  findUncredited,
  type UncreditedAccount,
} from '../../commands/deposits/credit-payments.ts';
import type { Orm } from '../../db/orm.ts';
import { describeError } from '../../process/describe-error.ts';
import { asAccount, asService } from '../../process/work-context.ts';
import { Waker } from '../waker.ts';

/** Accounts served at once, each with one transaction, because the lock on its balance allows no more. */
const MAX_AT_ONCE = 6;
/** How often it looks without being notified. */
const IDLE_MS = 1_000;
/** How long an account waits if another process serves it, or its transaction failed. */
const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 30_000;
/** The longest pause of an account whose balance is locked: it may be free at any time. */
const MAX_LOCKED_PAUSE_MS = 2_000;
/** How long a locked account may keep others from its slot: it is tried again soon. */
const MAX_LOCK_WAIT_MS = 250;
const LOCK_NOT_AVAILABLE = '55P03';

export interface Crediting {
  /** Call it when there may be payments to judge. */
  wake(): void;
  stop(): Promise<void>;
}

/** An account that is being served, or paused. */
interface Served {
  /** When, by performance.now(), it may be served again; infinite while it is being served. */
  againAtMs: number;
  failures: number;
}

/**
 * Credits the payments that the scan found, several accounts at a time. An account whose balance is locked, or whose
 * transactions fail, delays no other.
 * @param dependencies.credited is called after each commit
 */
export function startCrediting(dependencies: { orm: Orm; logger: Logger; credited(): void }): Crediting {
  const { orm, logger, credited } = dependencies;
  const waker = new Waker(IDLE_MS);
  const served = new Map<string, Served>();
  const underWay = new Set<Promise<void>>();
  let after: string | null = null;

  async function turn(): Promise<void> {
    const now = performance.now();
    for (const [partnerId, { againAtMs, failures }] of served)
      if (againAtMs <= now && failures === 0) served.delete(partnerId);
    const except = [...served].filter(([, { againAtMs }]) => againAtMs > now).map(([partnerId]) => partnerId);
    const limit = MAX_AT_ONCE - underWay.size;
    if (limit === 0) return;
    const found = await asService('deposits', () => findUncredited(orm.em.fork(), { after, except, limit }));
    // After the last account it begins again with the first.
    if (after !== null && found.length < limit) waker.wake();
    after = found.length < limit ? null : (found.at(-1)?.partnerId ?? null);
    for (const account of found) start(account);
  }

  function start(account: UncreditedAccount): void {
    const { partnerId } = account;
    const failures = served.get(partnerId)?.failures ?? 0;
    served.set(partnerId, { againAtMs: Number.POSITIVE_INFINITY, failures });
    const work = asAccount({ partnerId, mode: 'live' }, () => serve(account, failures)).then((next) => {
      served.set(partnerId, next);
      underWay.delete(work);
      waker.wake();
    });
    underWay.add(work);
  }

  /** Never throws. @returns when the account may be served again */
  async function serve({ partnerId, depositIds }: UncreditedAccount, failures: number): Promise<Served> {
    try {
      const { judged } = await creditTogetherOrApart(depositIds);
      if (judged > 0) credited();
      // If none was judged, another process holds these deposits.
      return { againAtMs: performance.now() + (judged > 0 ? 0 : FIRST_PAUSE_MS), failures: 0 };
    } catch (error) {
      const isLocked = (error as { code?: unknown }).code === LOCK_NOT_AVAILABLE;
      const longestMs = isLocked ? MAX_LOCKED_PAUSE_MS : MAX_PAUSE_MS;
      const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** failures, longestMs);
      logger.error(
        { partnerId, deposits: depositIds.length, error: describeError(error), againInMs: pauseMs },
        "could not credit an account's payments; trying again",
      );
      return { againAtMs: performance.now() + pauseMs, failures: failures + 1 };
    }
  }

  /** If deposits fail together, tries each alone, so that one does not hold up the others. @throws the last error */
  async function creditTogetherOrApart(depositIds: readonly string[]): Promise<CreditedPayments> {
    try {
      return await creditPayments(orm, depositIds, MAX_LOCK_WAIT_MS);
    } catch (error) {
      const { code } = error as { code?: unknown };
      if (depositIds.length === 1 || code === LOCK_NOT_AVAILABLE) throw error;
    }
    const all: CreditedPayments = { judged: 0, credited: 0 };
    let failure: unknown;
    for (const depositId of depositIds) {
      if (waker.stopped) break;
      try {
        const one = await creditPayments(orm, [depositId], MAX_LOCK_WAIT_MS);
        all.judged += one.judged;
        all.credited += one.credited;
      } catch (error) {
        failure = error;
      }
    }
    if (all.judged > 0) credited();
    if (failure !== undefined) throw failure;
    return all;
  }

  const running = waker.run(turn, (error) =>
    logger.error({ error: describeError(error) }, 'could not read which payments to credit; trying again'),
  );
  return {
    wake: () => waker.wake(),
    stop: async () => {
      waker.stop();
      await running;
      await Promise.all(underWay);
    },
  };
}
