import { setTimeout } from 'node:timers/promises';
import { inTransaction } from '../process/work-context.ts';
import { isRetryable } from './is-retryable.ts';
import type { Orm } from './orm.ts';
import type { Transactor } from './sql.ts';

const ATTEMPTS = 5;

/**
 * Runs `work` in its own transaction. If PostgreSQL rolls it back because of a conflict with another
 * transaction (a deadlock, say, or two that open the same ledger account), runs it again from the start.
 */
export function transaction<T>(orm: Orm, work: (tx: Transactor) => Promise<T>): Promise<T> {
  return untilNoConflict(() =>
    orm.em.fork().transactional((tx) => inTransaction(() => work(tx as Transactor))),
  );
}

/** The same for a statement that is a whole transaction by itself. */
export async function untilNoConflict<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt === ATTEMPTS || !isRetryable(error)) throw error;
      // A random pause, so that the transactions that deadlocked don't do so again at once.
      await setTimeout(Math.random() * attempt * 20);
    }
  }
}
