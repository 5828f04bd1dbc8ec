import type { EntityManager } from '@mikro-orm/postgresql';
import type { Orm } from './orm.ts';

const ATTEMPTS = 5;

/**
 * Runs `work` in a transaction of its own, and again from the start where PostgreSQL ended it for another's sake
 * (deadlock 40P01, serialization 40001): nothing of it had happened then.
 */
export async function transaction<T>(orm: Orm, work: (tx: EntityManager) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await orm.em.fork().transactional(work);
    } catch (error) {
      if (attempt === ATTEMPTS || !isTransient(error)) throw error;
    }
  }
}

function isTransient(error: unknown): boolean {
  const code = (error as { code?: unknown }).code;
  return code === '40P01' || code === '40001';
}
