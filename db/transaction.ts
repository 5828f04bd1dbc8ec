import { setTimeout } from 'node:timers/promises';
import { isRetryable } from './is-retryable.ts';
import type { Orm } from './orm.ts';
import type { Transactor } from './sql.ts';
import { inTransaction } from './working-for.ts';

const ATTEMPTS = 5;

/**
 * Runs `work` in a transaction of its own, and again from the start where PostgreSQL ended it for another's sake
 * (a deadlock, say, or two transactions that open the same account): nothing of it had happened then.
 */
export async function transaction<T>(orm: Orm, work: (tx: Transactor) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await orm.em.fork().transactional((tx) => inTransaction(() => work(tx as Transactor)));
    } catch (error) {
      if (attempt === ATTEMPTS || !isRetryable(error)) throw error;
      // Those that met in a deadlock should not meet again at once.
      await setTimeout(Math.random() * attempt * 20);
    }
  }
}
