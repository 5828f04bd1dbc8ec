import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { migrate } from '../../db/migrate.ts';
import { freePort } from '../../dev/free-port.ts';
import { type RunningPostgres, startEmbeddedPostgres } from '../../dev/postgres/embedded-postgres.ts';

const TEMPLATE = 'migrated_template';
let running: Promise<RunningPostgres> | undefined;
let folder: string | undefined;
let count = 0;

/** The PostgreSQL server of this test run, started by the first test that asks for it. */
export function testPostgres(): Promise<RunningPostgres> {
  running ??= start();
  return running;
}

/** A new migrated database of its own, and its owner's URL. */
export async function createTestDatabase(): Promise<string> {
  const postgres = await testPostgres();
  const name = `test_${process.pid}_${count++}`;
  await run(postgres.url, `CREATE DATABASE ${name} TEMPLATE ${TEMPLATE}`);
  return postgres.urlOf(name);
}

export async function stopTestPostgres(): Promise<void> {
  if (running === undefined) return;
  await (await running).stop();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
}

async function start(): Promise<RunningPostgres> {
  folder = await mkdtemp(join(tmpdir(), 'card-issuing-test-'));
  // As root the server runs as another user, who has to reach its data folder through this one.
  await chmod(folder, 0o755);
  const postgres = await startEmbeddedPostgres({
    dataDir: join(folder, 'pg'),
    port: await freePort(),
    password: 'test',
  });
  await postgres.createDatabase(TEMPLATE);
  await migrate(postgres.urlOf(TEMPLATE));
  return postgres;
}

async function run(url: string, sql: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
