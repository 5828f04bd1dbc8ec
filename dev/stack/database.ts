import { join } from 'node:path';
import { API_ROLE, OPERATOR_ROLE, WORKER_ROLE } from '../../platform/db/login.ts';
import { migrate, OtherMigrations } from '../../platform/db/migrate.ts';
import { placeCluster } from '../postgres/cluster.ts';
import { startEmbeddedPostgres } from '../postgres/embedded-postgres.ts';
import { createLogin, databaseUrl, urlFor } from '../postgres/logins.ts';
import { withClient } from '../postgres/with-client.ts';
import { rotateLog } from '../process/files.ts';
import { keepRunning } from '../process/keep-running.ts';
import type { DataFolder, Secrets } from './data-folder.ts';
import type { Settings } from './settings.ts';

/** The service's own database on the embedded server. */
const DATABASE = 'card_issuing';

interface DatabaseOptions {
  folder: DataFolder;
  port: number;
  password: string;
  report: (line: string) => void;
  onSpawn: (name: string, pid: number) => void;
  disposables: AsyncDisposableStack;
}

/**
 * Starts the embedded PostgreSQL, restarts it whenever it ends, and creates the service's database on it.
 * @returns the database's URL
 */
export async function startDatabase(options: DatabaseOptions): Promise<string> {
  const { folder, report } = options;
  report('starting PostgreSQL');
  const dataDir = await placeCluster({
    dataDir: folder.postgres,
    locationFile: folder.postgresLocation,
    report,
  });
  const logFile = join(folder.logs, 'postgres.log');
  rotateLog(logFile);
  const kept = await keepRunning({
    name: 'PostgreSQL',
    report,
    start: () =>
      startEmbeddedPostgres({
        dataDir,
        port: options.port,
        password: options.password,
        logFile,
        onSpawn: options.onSpawn,
      }),
  });
  options.disposables.defer(() => kept.stop());
  const { url } = kept.first;
  await withClient(url, async (client) => {
    const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [DATABASE]);
    if (rowCount === 0) await client.query(`CREATE DATABASE ${DATABASE}`);
  });
  return databaseUrl(url, DATABASE);
}

/** Brings the service's database up to date. */
export async function migrateDatabase(url: string, report: (line: string) => void): Promise<void> {
  try {
    const { migrations, functions } = await migrate(url);
    if (migrations.length + functions.length > 0)
      report(`applied ${migrations.length} migrations and ${functions.length} functions`);
  } catch (error) {
    if (error instanceof OtherMigrations) throw new Error(error.message);
    const { host, pathname } = new URL(url);
    throw new Error(
      `database ${pathname.slice(1)} at ${host} can't be migrated; make sure that it is running, or correct DATABASE_URL`,
      { cause: error },
    );
  }
}

/**
 * Creates the logins of API, worker and operator in a migrated database, as an operator does in production.
 * @returns their URLs, `databaseUrl` being the API's; with DATABASE_URL and ALLOW_OWNER_LOGIN=true, the owner's for all
 */
export async function makeLogins(
  ownerUrl: string,
  { api, worker, operator }: Secrets['logins'],
  settings: Pick<Settings, 'DATABASE_URL' | 'ALLOW_OWNER_LOGIN'>,
): Promise<{ databaseUrl: string; workerDatabaseUrl: string; operatorDatabaseUrl: string }> {
  if (settings.DATABASE_URL !== undefined && settings.ALLOW_OWNER_LOGIN === 'true') {
    return { databaseUrl: ownerUrl, workerDatabaseUrl: ownerUrl, operatorDatabaseUrl: ownerUrl };
  }
  try {
    await createLogin(ownerUrl, { ...api, role: API_ROLE });
    await createLogin(ownerUrl, { ...worker, role: WORKER_ROLE });
    await createLogin(ownerUrl, { ...operator, role: OPERATOR_ROLE });
  } catch (error) {
    throw new Error(
      "the logins of API, worker and operator can't be created: give DATABASE_URL a user that may create roles (CREATEROLE), " +
        'or set ALLOW_OWNER_LOGIN=true to have everything log in as the user of DATABASE_URL',
      { cause: error },
    );
  }
  return {
    databaseUrl: urlFor(ownerUrl, api),
    workerDatabaseUrl: urlFor(ownerUrl, worker),
    operatorDatabaseUrl: urlFor(ownerUrl, operator),
  };
}
