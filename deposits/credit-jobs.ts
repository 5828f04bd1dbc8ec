import type { Logger } from 'pino';
import type { Orm } from '../platform/db/orm.ts';
import { creditPayments, findUncredited } from './credit-payments.ts';
import { type Serving, serveAccounts } from './serve-accounts-jobs.ts';

/** How long a locked account may keep others from its slot: it is tried again soon. */
const MAX_LOCK_WAIT_MS = 250;
/** A fallback for notifications, which can be lost. */
const POLL_MS = 5_000;

/**
 * Credits the payments that were found, several accounts at a time.
 * @param dependencies.credited is called after each commit
 */
export function startCrediting(dependencies: { orm: Orm; logger: Logger; credited(): void }): Serving {
  const { orm, logger, credited } = dependencies;
  return serveAccounts({
    what: "credit an account's payments",
    logger,
    idleMs: POLL_MS,
    find: (wanted) => findUncredited(orm.em.fork(), wanted),
    serve: async ({ depositIds }) => (await creditPayments(orm, depositIds, MAX_LOCK_WAIT_MS)).judged,
    served: credited,
  });
}
