import { join } from 'node:path';
import pg from 'pg';
import { type RunningPostgres, startEmbeddedPostgres } from '../postgres/embedded-postgres.ts';
import { placeCluster } from '../postgres/place-cluster.ts';
import { keepRunning } from '../process/keep-running.ts';
import { rotateLog } from '../process/rotate-log.ts';
import type { DataFolder } from './data-folder.ts';

/** The service's own database on the embedded server. */
const DATABASE = 'card_issuing';

export interface DatabaseOptions {
  folder: DataFolder;
  port: number;
  password: string;
  report: (line: string) => void;
  onSpawn: (name: string, pid: number) => void;
  disposables: AsyncDisposableStack;
}

/** Starts the embedded PostgreSQL, which is started again should it end, and makes the service's database on it. */
export async function startDatabase(
  options: DatabaseOptions,
): Promise<{ postgres: RunningPostgres; databaseUrl: string }> {
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
  const postgres = kept.first;
  await createIfMissing(postgres);
  return { postgres, databaseUrl: postgres.urlOf(DATABASE) };
}

async function createIfMissing(postgres: RunningPostgres): Promise<void> {
  const client = new pg.Client(postgres.url);
  await client.connect();
  try {
    const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [DATABASE]);
    if (rowCount === 0) await postgres.createDatabase(DATABASE);
  } finally {
    await client.end();
  }
}
