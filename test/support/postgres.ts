import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { freePort } from '../../dev/free-port.ts';
import { type RunningPostgres, startEmbeddedPostgres } from '../../dev/postgres/embedded-postgres.ts';
import { createLogin, databaseUrl, urlFor } from '../../dev/postgres/logins.ts';
import { signalProcess } from '../../dev/process/identity.ts';
import { API_ROLE, OPERATOR_ROLE, WORKER_ROLE } from '../../platform/db/login.ts';
import { migrate } from '../../platform/db/migrate.ts';
import { type Orm, openOrm } from '../../platform/db/orm.ts';
import { OPERATOR_LIMITS } from '../../platform/db/session.ts';
import { testServers } from './servers.ts';

const TEMPLATE = 'migrated_template';
const OWNER = { user: 'postgres', password: 'test' };
/** For tests that run commands of API and worker side by side: a process still works as its own role alone. */
const SERVICE = { user: 'test_service', password: 'test' };
const API = { user: 'test_api', password: 'test', role: API_ROLE };
const WORKER = { user: 'test_worker', password: 'test', role: WORKER_ROLE };
const OPERATOR = { user: 'test_operator', password: 'test', role: OPERATOR_ROLE };
const SECOND_OPERATOR = { ...OPERATOR, user: 'test_second_operator' };
let count = 0;

/** The URL of the same test database for its owner, who may look at everything and change it. */
export const ownerUrlOf = (url: string): string => urlFor(url, OWNER);

export const apiUrlOf = (url: string): string => urlFor(url, API);

export const workerUrlOf = (url: string): string => urlFor(url, WORKER);

/** The URL of the same test database for a login that is both API and worker. */
export const serviceUrlOf = (url: string): string => urlFor(url, SERVICE);

export const operatorUrlOf = (url: string): string => urlFor(url, OPERATOR);

/** The URL of the same test database for another operator, with a login of their own. */
export const secondOperatorUrlOf = (url: string): string => urlFor(url, SECOND_OPERATOR);

/** A connection to a database, which ends with the block that it is in. */
export async function connectTo(url: string): Promise<pg.Client & AsyncDisposable> {
  const client = new pg.Client(url);
  await client.connect();
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
}

/**
 * Runs one statement, or several without values, as the owner of the tables, who may do what the service may not.
 * @param database a stack, or the URL of its database
 * @returns the rows of the last statement
 */
export async function asOwner<Row extends pg.QueryResultRow>(
  database: string | { config: { databaseUrl: string } },
  statements: string | readonly string[],
  values: unknown[] = [],
): Promise<Row[]> {
  const url = typeof database === 'string' ? database : database.config.databaseUrl;
  await using client = await connectTo(ownerUrlOf(url));
  let rows: Row[] = [];
  for (const statement of [statements].flat()) rows = (await client.query<Row>(statement, values)).rows;
  return rows;
}

/** Makes the logins of API, worker and operator on a migrated test server, and the one that is both API and worker. */
export async function createTestLogins(ownerUrl: string): Promise<void> {
  await createLogin(ownerUrl, API);
  await createLogin(ownerUrl, WORKER);
  await createLogin(ownerUrl, { ...SERVICE, role: API_ROLE });
  await createLogin(ownerUrl, { ...SERVICE, role: WORKER_ROLE });
  await createLogin(ownerUrl, OPERATOR);
  await createLogin(ownerUrl, SECOND_OPERATOR);
}

export const openOperatorOrm = (url: string): Promise<Orm> =>
  openOrm({ databaseUrl: operatorUrlOf(url), poolSize: 20, limits: OPERATOR_LIMITS, role: OPERATOR_ROLE });

/** The same, by the owner: for rows that a test makes up, which need no entry in the audit log then. */
export const openOwnerOrm = (url: string): Promise<Orm> =>
  openOrm({
    databaseUrl: ownerUrlOf(url),
    poolSize: 20,
    limits: OPERATOR_LIMITS,
    role: OPERATOR_ROLE,
    onOwnerLogin: () => {},
  });

/** A new migrated database of its own, and the service's URL. */
export async function createTestDatabase(): Promise<string> {
  const name = `test_${process.pid}_${count++}`;
  const { postgresUrl } = testServers();
  // Copying files takes a third of what writing them to the log takes.
  await asOwner(postgresUrl, `CREATE DATABASE ${name} TEMPLATE ${TEMPLATE} STRATEGY FILE_COPY`);
  return serviceUrlOf(databaseUrl(postgresUrl, name));
}

export async function createEmptyDatabase(): Promise<string> {
  const name = `empty_${process.pid}_${count++}`;
  const { postgresUrl } = testServers();
  await asOwner(postgresUrl, `CREATE DATABASE ${name}`);
  return databaseUrl(postgresUrl, name);
}

export async function startTestPostgres(): Promise<Pick<RunningPostgres, 'url' | 'stop'>> {
  const folder = await mkdtemp(join(tmpdir(), 'card-issuing-test-'));
  // If we are root, the server runs as another user, who needs access to its data folder through this one.
  await chmod(folder, 0o755);
  const postgres = await startEmbeddedPostgres({
    dataDir: join(folder, 'pg'),
    port: await freePort(),
    password: OWNER.password,
    // Nothing outlives the run; tests that kill a server start one of their own.
    settings: ['fsync=off', 'full_page_writes=off', 'max_connections=300'],
  });
  await asOwner(postgres.url, `CREATE DATABASE ${TEMPLATE}`);
  const template = databaseUrl(postgres.url, TEMPLATE);
  await migrate(template);
  await createTestLogins(template);
  return {
    url: postgres.url,
    stop: async () => {
      await postgres.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** A server that can be killed without anyone else noticing. */
export async function startOwnPostgres() {
  const folder = await mkdtemp(join(tmpdir(), 'card-issuing-own-postgres-'));
  // If we are root, the server runs as another user, who needs access to its data folder through this one.
  await chmod(folder, 0o755);
  const dataDir = join(folder, 'pg');
  const port = await freePort();
  const start = () => startEmbeddedPostgres({ dataDir, port, password: 'test' });
  let postgres = await start();
  await migrate(postgres.url);
  await createTestLogins(postgres.url);
  return {
    databaseUrl: serviceUrlOf(postgres.url),
    /** kill -9 of every process of the server, and a start from what is on the disk. */
    async crash() {
      await killServer(Number.parseInt(await readFile(join(dataDir, 'postmaster.pid'), 'utf8'), 10));
      assert.equal(await postgres.exited, 'signal SIGKILL');
      postgres = await start();
    },
    async close() {
      await postgres.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export type OwnPostgres = Awaited<ReturnType<typeof startOwnPostgres>>;

/** kill -9 of a PostgreSQL server: of its first process, and of those that it started. */
export async function killServer(postmaster: number): Promise<void> {
  // So that it starts no other meanwhile.
  process.kill(postmaster, 'SIGSTOP');
  const { stdout } = await promisify(execFile)('pgrep', ['-P', String(postmaster)]);
  const backends = stdout.trim().split('\n').map(Number);
  // A backend may have ended with its client.
  for (const pid of [postmaster, ...backends]) signalProcess(pid, 'SIGKILL');
}
