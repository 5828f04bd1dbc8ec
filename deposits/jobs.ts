import type { Logger } from 'pino';
import type { Tenant } from '../domain/mode.ts';
import { isLockTimeout } from '../platform/db/is-retryable.ts';
import type { Orm } from '../platform/db/orm.ts';
import { describeError } from '../platform/process/describe-error.ts';
import { repeat } from '../platform/process/repeat.ts';
import { asAccount, asService } from '../platform/process/work-context.ts';
import { creditPayments, findUncredited } from './credit-payments.ts';
import { type AccountDeposits, type AccountsWanted, accountOf } from './deposit-state.ts';
import { expireDeposits, findUnpaid } from './expire.ts';
import { findDueTestDeposits, playTestDeposits } from './test-deposits.ts';

/** Accounts served at once, each with one transaction, because locks of an account allow no more. */
const MAX_AT_ONCE = 6;
/** How long an account waits if another process serves it, or its transaction failed. */
const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 30_000;
/** The longest pause of an account that is locked: it may be free at any time. */
const MAX_LOCKED_PAUSE_MS = 2_000;

export interface Serving {
  /** Call it when there may be something to do. */
  wake(): void;
  stop(): Promise<void>;
}

interface Work {
  /** What is done, for the log: `credit an account's payments`. */
  what: string;
  logger: Logger;
  /** How often it looks without being woken. */
  idleMs: number;
  /** Finds accounts with something to do. */
  find(wanted: AccountsWanted): Promise<AccountDeposits[]>;
  /**
   * Does it for some deposits of an account, in one transaction. @returns for how many; 0 if another process
   * holds all of them
   */
  serve(account: AccountDeposits): Promise<number>;
  /** Called after commits. */
  served(): void;
}

/** An account that is being served, or paused. */
interface Served extends Tenant {
  /** When, by performance.now(), it may be served again; infinite while it is being served. */
  againAtMs: number;
  failures: number;
}

/**
 * Does something with deposits, several accounts at a time, in turns. An account that is locked, or whose
 * transactions fail, delays no other. If an account's deposits fail together, each is tried alone, so that
 * one doesn't hold up the others.
 */
function serveAccounts({ what, logger, idleMs, find, serve, served: committed }: Work): Serving {
  const served = new Map<string, Served>();
  const underWay = new Set<Promise<void>>();
  let after: Tenant | null = null;

  const serving = repeat(`finding where to ${what}`, idleMs, logger, async () => {
    const now = performance.now();
    for (const [account, { againAtMs, failures }] of served)
      if (againAtMs <= now && failures === 0) served.delete(account);
    const except = [...served.values()].filter(({ againAtMs }) => againAtMs > now);
    const limit = MAX_AT_ONCE - underWay.size;
    if (limit === 0) return;
    const found = await asService('deposits', () => find({ after, except, limit }));
    // After the last account it begins again with the first.
    if (after !== null && found.length < limit) serving.wake();
    after = found.length < limit ? null : (found.at(-1) ?? null);
    for (const account of found) start(account);
  });

  function start(account: AccountDeposits): void {
    const { partnerId, mode } = account;
    const key = accountOf(account);
    const failures = served.get(key)?.failures ?? 0;
    served.set(key, { partnerId, mode, againAtMs: Number.POSITIVE_INFINITY, failures });
    const work = asAccount({ partnerId, mode }, () => attempt(account, failures)).then((next) => {
      served.set(key, next);
      underWay.delete(work);
      serving.wake();
      const pauseMs = next.againAtMs - performance.now();
      if (pauseMs > 0) serving.wakeWithin(pauseMs);
    });
    underWay.add(work);
  }

  /** Never throws. @returns when the account may be served again */
  async function attempt(account: AccountDeposits, failures: number): Promise<Served> {
    const { partnerId, mode, depositIds } = account;
    try {
      const count = await serveTogetherOrApart(account);
      if (count > 0) committed();
      // If it is none, another process holds these deposits.
      const againAtMs = performance.now() + (count > 0 ? 0 : FIRST_PAUSE_MS);
      return { partnerId, mode, againAtMs, failures: 0 };
    } catch (error) {
      const longestMs = isLockTimeout(error) ? MAX_LOCKED_PAUSE_MS : MAX_PAUSE_MS;
      const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** failures, longestMs);
      logger.error(
        { partnerId, mode, deposits: depositIds.length, error: describeError(error), againInMs: pauseMs },
        `could not ${what}; trying again`,
      );
      return { partnerId, mode, againAtMs: performance.now() + pauseMs, failures: failures + 1 };
    }
  }

  /** @throws the last error */
  async function serveTogetherOrApart(account: AccountDeposits): Promise<number> {
    try {
      return await serve(account);
    } catch (error) {
      if (account.depositIds.length === 1 || isLockTimeout(error)) throw error;
    }
    let count = 0;
    let failure: unknown;
    for (const depositId of account.depositIds) {
      if (serving.stopping.aborted) break;
      try {
        count += await serve({ ...account, depositIds: [depositId] });
      } catch (error) {
        failure = error;
      }
    }
    if (count > 0) committed();
    if (failure !== undefined) throw failure;
    return count;
  }

  return {
    wake: serving.wake,
    stop: async () => {
      await serving.stop();
      await Promise.all(underWay);
    },
  };
}

interface Dependencies {
  orm: Orm;
  logger: Logger;
  /** Called after commits. */
  served(): void;
}

/** Expires the deposits that were not paid in time, several accounts at a time. */
export const startExpiring = ({ orm, logger, served }: Dependencies): Serving =>
  serveAccounts({
    what: "expire an account's deposits",
    logger,
    idleMs: 1_000,
    find: (wanted) => findUnpaid(orm.em.fork(), wanted),
    serve: (account) => expireDeposits(orm, account),
    served,
  });

/**
 * Lets the payments of test deposits arrive, and expires those without one, several accounts at a time.
 */
export const startPlaying = ({ orm, logger, served }: Dependencies): Serving =>
  serveAccounts({
    what: "do what is due for an account's test deposits",
    logger,
    idleMs: 1_000,
    find: (wanted) => findDueTestDeposits(orm.em.fork(), wanted),
    serve: (account) => playTestDeposits(orm, account),
    served,
  });

/** How long a locked account may keep others from its slot: it is tried again soon. */
const MAX_LOCK_WAIT_MS = 250;

/** Credits the payments that were found, several accounts at a time. */
export const startCrediting = ({ orm, logger, served }: Dependencies): Serving =>
  serveAccounts({
    what: "credit an account's payments",
    logger,
    // A fallback for notifications, which can be lost.
    idleMs: 5_000,
    find: (wanted) => findUncredited(orm.em.fork(), wanted),
    serve: async ({ depositIds }) => (await creditPayments(orm, depositIds, MAX_LOCK_WAIT_MS)).judged,
    served,
  });
