import { fileURLToPath } from 'node:url';
import { runner } from 'node-pg-migrate';
import { MIGRATIONS_FOLDER } from './migration-names.ts';

/**
 * Applies the migrations that are still missing, each in its own transaction, under an advisory lock.
 * @returns the names of those it applied.
 */
export async function migrate(
  databaseUrl: string,
  log: (line: string) => void = () => {},
): Promise<string[]> {
  const applied = await runner({
    databaseUrl,
    dir: fileURLToPath(MIGRATIONS_FOLDER),
    direction: 'up',
    migrationsTable: 'schema_migration',
    singleTransaction: false,
    log,
  });
  return applied.map((migration) => migration.name);
}
