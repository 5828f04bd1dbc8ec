import type { Logger } from 'pino';
import { findDueTestDeposits, playTestDeposits } from '../../commands/deposits/test-deposits.ts';
import type { Orm } from '../../db/orm.ts';
import { repeatByClock } from '../repeat-by-clock.ts';
import { type Serving, serveAccounts } from './serve-accounts.ts';

/**
 * Lets the payments of test deposits arrive, and expires those without one, several accounts at a time.
 * @param dependencies.played is called after each commit
 */
export function startPlaying(dependencies: { orm: Orm; logger: Logger; played(): void }): Serving {
  const { orm, logger, played } = dependencies;
  const serving = serveAccounts({
    what: "do what is due for an account's test deposits",
    logger,
    find: (wanted) => findDueTestDeposits(orm.em.fork(), wanted),
    serve: (account) => playTestDeposits(orm, account),
    served: played,
  });
  // Right after an advance of a sandbox clock, they take turns with what else it made due.
  const clocks = repeatByClock(
    'the look for test deposits due by a test clock',
    { orm, logger },
    async (only) => {
      if (only === null) return false;
      const due = await findDueTestDeposits(orm.em.fork(), { after: null, except: [], limit: 1 }, only);
      if (due.length > 0) serving.wake();
      return false;
    },
  );
  return {
    wake: serving.wake,
    stop: async () => {
      await Promise.all([serving.stop(), clocks.stop()]);
    },
  };
}
