import type { EntityManager } from '@mikro-orm/postgresql';
import { CompiledQuery, type QueryExecutorProvider } from 'kysely';

/** What can run a statement: the EntityManager, inside its transaction if it has one. */
export type Sql = EntityManager;

/**
 * Runs one statement with bound parameters (`$1`, `$2` …) in the EntityManager's transaction, or on a pooled
 * connection outside one, and returns its rows. Values never become part of the statement's text, so neither an
 * error message nor a server log can carry them (MikroORM's own `em.execute` writes them into the text).
 */
export async function query<Row>(em: Sql, text: string, values: readonly unknown[] = []): Promise<Row[]> {
  const executor =
    em.getTransactionContext<QueryExecutorProvider & Executor>() ?? em.getConnection().getClient();
  const result = await executor.executeQuery(CompiledQuery.raw(text, [...values]));
  return result.rows as Row[];
}

interface Executor {
  executeQuery(query: CompiledQuery): Promise<{ rows: unknown[] }>;
}
