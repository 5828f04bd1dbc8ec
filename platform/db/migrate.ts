import { readdir } from 'node:fs/promises';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { isLockTimeout } from './is-retryable.ts';
import { CLIENT_KEEPALIVE, MIGRATION_LIMITS, startupOptions } from './session.ts';

export const MIGRATIONS_FOLDER = new URL('./migrations/', import.meta.url);

/** The database was migrated with other files than these. The message says what to do. */
export class OtherMigrations extends Error {}

const ATTEMPTS = 15;
/** The pause in which the sessions that waited behind the migration can proceed. */
const PAUSE_MS = 2_000;

/**
 * Applies the migrations that are still missing, each in its own transaction, under an advisory lock. A migration that can't
 * lock a table soon lets the sessions waiting behind it proceed, and tries again for about a minute.
 * @returns the names of the migrations it applied
 * @throws OtherMigrations if the database has others than this version's, in another order. Nothing is changed then.
 */
export async function migrate(
  databaseUrl: string,
  log: (line: string) => void = () => {},
): Promise<string[]> {
  // Loaded here, because the API only needs the names.
  const { runner } = await import('node-pg-migrate');
  const options = {
    databaseUrl: {
      connectionString: databaseUrl,
      options: startupOptions(MIGRATION_LIMITS),
      ...CLIENT_KEEPALIVE,
    },
    dir: fileURLToPath(MIGRATIONS_FOLDER),
    direction: 'up',
    migrationsTable: 'schema_migration',
    singleTransaction: false,
    log,
  } as const;
  const applied: string[] = [];
  for (let attempt = 1; ; ) {
    try {
      // One at a time, so that what was applied is known when the next one fails.
      const [migration] = await runner({ ...options, count: 1 });
      if (migration === undefined) return applied;
      applied.push(migration.name);
      attempt = 1;
    } catch (error) {
      if (!isLockTimeout(error)) throw otherMigrations(error) ?? error;
      if (attempt === ATTEMPTS) throw lockHeld(applied, error);
      attempt += 1;
      await sleep(PAUSE_MS);
    }
  }
}

/** As the owner: from now on, the database books no larger adjustment without an approval (docs/decisions/two-persons.md). */
export async function setAdjustmentLimit(databaseUrl: string, limitCents: number): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl, options: startupOptions(MIGRATION_LIMITS) });
  await client.connect();
  try {
    await client.query(
      `INSERT INTO adjustment_limit (limit_cents) VALUES ($1)
       ON CONFLICT (only_one) DO UPDATE SET limit_cents = excluded.limit_cents`,
      [limitCents],
    );
  } finally {
    await client.end();
  }
}

/** The names of this version's migrations as they are recorded, in order. */
export async function expectedMigrations(): Promise<string[]> {
  const files = await readdir(MIGRATIONS_FOLDER);
  return files
    .filter((file) => file.endsWith('.sql'))
    .map((file) => basename(file, '.sql'))
    .sort();
}

/** node-pg-migrate's error if the migrations that were applied are not the first ones of this version. */
const OTHER_ORDER = /^Not run migration (\S+) is preceding already run migration (\S+)$/;

function otherMigrations(cause: unknown): OtherMigrations | null {
  const [, ours, applied] = OTHER_ORDER.exec(cause instanceof Error ? cause.message : '') ?? [];
  if (applied === undefined) return null;
  return new OtherMigrations(
    `The database has the migration ${applied} where this version has ${ours}: another version created it, and this one can't ` +
      'continue from there. Nothing was changed. Start with an empty database: "npm run reset" empties the local stack\'s; ' +
      'otherwise, create a new one and set DATABASE_URL. To keep this database, run the version that created it.',
    { cause },
  );
}

function lockHeld(applied: string[], cause: unknown): Error {
  return new Error(
    `The migration after ${applied.at(-1) ?? 'nothing'} could not lock its tables because another session holds a lock: it ` +
      `tried ${ATTEMPTS} times for ${MIGRATION_LIMITS.lockMs} ms each. Nothing of it was applied. Find the session ` +
      '(SELECT pid, state, xact_start, query FROM pg_stat_activity ORDER BY xact_start), let it end, and run this again.',
    { cause },
  );
}
