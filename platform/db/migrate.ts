import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { describeError } from '../process/describe-error.ts';
import { isLockTimeout } from './is-retryable.ts';
import { CLIENT_KEEPALIVE, MIGRATION_LIMITS, startupOptions } from './session.ts';

const MIGRATIONS_FOLDER = new URL('./migrations/', import.meta.url);
const FUNCTIONS_FOLDER = new URL('./functions/', import.meta.url);

/** The database was migrated with other files than these. The message says what to do. */
export class OtherMigrations extends Error {}

const ATTEMPTS = 15;
/** The pause in which the sessions that waited behind the migration can proceed. */
const PAUSE_MS = 2_000;

/**
 * Brings a database to this version: applies the migrations that are missing, each in its own transaction,
 * then in one transaction the functions that differ, and makes the partitions of this time. What can't lock a
 * table soon lets the sessions waiting behind it proceed, and tries again for about a minute.
 * @returns the names of what it applied
 * @throws OtherMigrations if the database has others than this version's, in another order. Nothing is
 * changed then.
 */
export async function migrate(
  databaseUrl: string,
): Promise<{ migrations: readonly string[]; functions: readonly string[] }> {
  const migrations = await applyMigrations(databaseUrl);
  let functions: readonly string[] = [];
  const client = new pg.Client(connectionTo(databaseUrl));
  await client.connect();
  try {
    await withRetries(migrations, async () => {
      functions = await applyFunctions(client);
    });
    let made: string | null;
    do {
      const { rows } = await client.query<{ name: string | null }>('SELECT make_partition() AS name');
      made = rows[0]?.name ?? null;
    } while (made !== null);
  } finally {
    await client.end();
  }
  return { migrations, functions };
}

const connectionTo = (databaseUrl: string) => ({
  connectionString: databaseUrl,
  options: startupOptions(MIGRATION_LIMITS),
  ...CLIENT_KEEPALIVE,
});

async function applyMigrations(databaseUrl: string): Promise<string[]> {
  // Loaded here, because the API only needs the names.
  const { runner } = await import('node-pg-migrate');
  const options = {
    databaseUrl: connectionTo(databaseUrl),
    dir: fileURLToPath(MIGRATIONS_FOLDER),
    direction: 'up',
    migrationsTable: 'schema_migration',
    singleTransaction: false,
    log: () => {},
  } as const;
  const applied: string[] = [];
  for (;;) {
    const before = applied.length;
    await withRetries(applied, async () => {
      // One at a time, so that what was applied is known when the next one fails.
      const [migration] = await runner({ ...options, count: 1 });
      if (migration !== undefined) applied.push(migration.name);
    });
    if (applied.length === before) return applied;
  }
}

async function withRetries(applied: readonly string[], apply: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await apply();
    } catch (error) {
      if (!isLockTimeout(error)) throw otherMigrations(error) ?? error;
      if (attempt === ATTEMPTS) throw lockHeld(applied, error);
      await sleep(PAUSE_MS);
    }
  }
}

/** @returns the names of those that it applied: their text is another one than the database's */
async function applyFunctions(client: pg.Client): Promise<string[]> {
  await client.query('BEGIN');
  try {
    // Whoever migrates at the same time waits here, and then finds nothing to do.
    await client.query('LOCK TABLE schema_function IN EXCLUSIVE MODE');
    // A body may name what a later file makes.
    await client.query('SET LOCAL check_function_bodies = off');
    const { rows } = await client.query<{ name: string; sha256: Buffer }>(
      'SELECT DISTINCT ON (name) name, sha256 FROM schema_function ORDER BY name, applied_at DESC',
    );
    const current = new Map(rows.map(({ name, sha256 }) => [name, sha256]));
    const changed = (await functionFiles()).filter(({ name, sha256 }) => !current.get(name)?.equals(sha256));
    const waiting = [...changed];
    for (let sinceApplied = 0, next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      await client.query('SAVEPOINT before_function');
      try {
        await client.query(next.text);
        sinceApplied = 0;
      } catch (error) {
        if (isLockTimeout(error)) throw error;
        // It calls one of those after it, which PostgreSQL wants to know first.
        if ((error as pg.DatabaseError).code !== UNDEFINED_FUNCTION || sinceApplied > waiting.length)
          throw refused(next.name, error);
        await client.query('ROLLBACK TO SAVEPOINT before_function');
        waiting.push(next);
        sinceApplied += 1;
      }
    }
    for (const { name, sha256 } of changed) {
      await client.query(
        `INSERT INTO schema_function (name, sha256, applied_at) VALUES ($1, $2, clock_timestamp())
         ON CONFLICT (name, sha256) DO UPDATE SET applied_at = excluded.applied_at`,
        [name, sha256],
      );
    }
    await client.query('COMMIT');
    return changed.map(({ name }) => name);
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  }
}

const UNDEFINED_FUNCTION = '42883';

const refused = (name: string, cause: unknown) => {
  const { summary } = describeError(cause);
  return new Error(`platform/db/functions/${name}.sql: ${summary}; no function was applied`, { cause });
};

/** The functions of this version, each with its triggers and grants. */
export async function functionFiles(): Promise<{ name: string; text: string; sha256: Buffer }[]> {
  const names = (await readdir(FUNCTIONS_FOLDER)).filter((file) => file.endsWith('.sql')).sort();
  return Promise.all(
    names.map(async (file) => {
      const text = await readFile(new URL(file, FUNCTIONS_FOLDER), 'utf8');
      return { name: basename(file, '.sql'), text, sha256: createHash('sha256').update(text).digest() };
    }),
  );
}

/**
 * As the owner: from now on, the database books no larger adjustment without an approval
 * (docs/decisions/two-persons.md).
 */
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

function lockHeld(applied: readonly string[], cause: unknown): Error {
  return new Error(
    `What comes after ${applied.at(-1) ?? 'nothing'} could not lock its tables because another session holds a lock: it ` +
      `tried ${ATTEMPTS} times for ${MIGRATION_LIMITS.lockMs} ms each. Nothing of it was applied. Find the session ` +
      '(SELECT pid, state, xact_start, query FROM pg_stat_activity ORDER BY xact_start), let it end, and run this again.',
    { cause },
  );
}
