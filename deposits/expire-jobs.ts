import type { Logger } from 'pino';
import type { Orm } from '../platform/db/orm.ts';
import { expireDeposits, findUnpaid } from './expire.ts';
import { type Serving, serveAccounts } from './serve-accounts-jobs.ts';

/**
 * Expires the deposits that were not paid in time, several accounts at a time.
 * @param dependencies.expired is called after each commit
 */
export function startExpiring(dependencies: { orm: Orm; logger: Logger; expired(): void }): Serving {
  const { orm, logger, expired } = dependencies;
  return serveAccounts({
    what: "expire an account's deposits",
    logger,
    idleMs: 1_000,
    find: (wanted) => findUnpaid(orm.em.fork(), wanted),
    serve: (account) => expireDeposits(orm, account),
    served: expired,
  });
}
