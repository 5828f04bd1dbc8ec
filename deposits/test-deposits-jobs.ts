import type { Logger } from 'pino';
import type { Orm } from '../platform/db/orm.ts';
import { type Serving, serveAccounts } from './serve-accounts-jobs.ts';
import { findDueTestDeposits, playTestDeposits } from './test-deposits.ts';

/**
 * Lets the payments of test deposits arrive, and expires those without one, several accounts at a time.
 * @param dependencies.played is called after each commit
 */
export function startPlaying(dependencies: { orm: Orm; logger: Logger; played(): void }): Serving {
  const { orm, logger, played } = dependencies;
  return serveAccounts({
    what: "do what is due for an account's test deposits",
    logger,
    idleMs: 1_000,
    find: (wanted) => findDueTestDeposits(orm.em.fork(), wanted),
    serve: (account) => playTestDeposits(orm, account),
    served: played,
  });
}
