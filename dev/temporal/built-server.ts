import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type pg from 'pg';
import { freePorts } from '../free-port.ts';
import { databaseUrl } from '../postgres/logins.ts';
import { withClient } from '../postgres/with-client.ts';
import { type Child, childEnvironment, startChild } from '../process/child.ts';
import { keepRunning, type Running } from '../process/keep-running.ts';
import {
  connectAndRegister,
  type RunningTemporal,
  STOP_STEPS,
  type TemporalOptions,
} from './running-temporal.ts';
import {
  DEFAULT_STORE,
  dynamicConfigFile,
  INNER_PORTS,
  serverConfig,
  VISIBILITY_STORE,
} from './server-config.ts';
import type { ServerBinaries, TemporalSource } from './temporal-source.ts';

/** Runs the server built from source and its UI, and restarts the UI whenever it ends. */
export async function startBuilt(
  source: Extract<TemporalSource, { kind: 'built' }>,
  options: TemporalOptions,
): Promise<RunningTemporal> {
  if (options.postgres === undefined) throw new Error('a Temporal server built from source needs PostgreSQL');
  const { namespace, port, uiPort } = options;
  const address = `127.0.0.1:${port}`;
  const shared = {
    binaries: source.binaries,
    folder: join(options.dataDir, 'temporal'),
    logFolder: join(options.dataDir, 'logs'),
    onSpawn: options.onSpawn,
  };
  const server = await startBuiltServer({ ...shared, postgresUrl: options.postgres.url, port });
  await connectAndRegister(address, namespace, server);
  const ui = uiPort === undefined ? undefined : await keepUi(uiPort);
  const stop = async () => {
    await Promise.all([ui?.stop(), server.stop(STOP_STEPS)]);
  };
  return {
    address,
    namespace,
    uiUrl: ui === undefined ? null : `http://127.0.0.1:${uiPort}`,
    source: source.label,
    // The UI goes with its server: the next start brings both.
    exited: server.exited.then(async (how) => {
      await ui?.stop();
      return how;
    }),
    stop,
  };

  function keepUi(port: number) {
    const start = () =>
      startUi({ ...shared, address, namespace, port, codecEndpoint: options.codecEndpoint });
    return keepRunning({ name: 'Temporal UI', start, report: options.onProgress });
  }
}

interface BuiltServerOptions {
  binaries: ServerBinaries;
  /** Where its configuration goes. */
  folder: string;
  logFolder: string;
  /** URL of the PostgreSQL server's maintenance database, as a user who may create databases. */
  postgresUrl: string;
  port: number;
  onSpawn?: (name: string, pid: number) => void;
}

/** Starts the production server on PostgreSQL. It answers at 127.0.0.1:port a moment later. */
async function startBuiltServer(options: BuiltServerOptions): Promise<Child> {
  const { binaries, folder, port } = options;
  await createSchema(binaries.sqlTool, options.postgresUrl);
  await forgetMembers(options.postgresUrl);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const dynamicConfig = join(folder, 'dynamic-config.yaml');
  await writeFile(dynamicConfig, dynamicConfigFile());
  const configFile = join(folder, 'server.yaml');
  const config = serverConfig({
    postgres: new URL(options.postgresUrl),
    frontendPort: port,
    innerPorts: await freePorts(INNER_PORTS),
    dynamicConfigFile: dynamicConfig,
  });
  await writeFile(configFile, JSON.stringify(config, null, 2), { mode: 0o600 });
  const child = await startChild({
    name: 'Temporal',
    command: binaries.server,
    args: ['--config-file', configFile, '--allow-no-auth', 'start'],
    env: childEnvironment(),
    cwd: folder,
    logFile: join(options.logFolder, 'temporal.log'),
    onSpawn: options.onSpawn,
  });
  return child;
}

/** A killed server is still listed as a member, and the next one would spend its first seconds trying to reach it. */
async function forgetMembers(postgresUrl: string): Promise<void> {
  await withClient(databaseUrl(postgresUrl, DEFAULT_STORE), async (client) => {
    await client.query('DELETE FROM cluster_membership');
  });
}

const STORES = [
  { database: DEFAULT_STORE, schema: 'postgresql/v12/temporal' },
  { database: VISIBILITY_STORE, schema: 'postgresql/v12/visibility' },
];

/**
 * Creates Temporal's two databases, or updates them to the server's version. A database gets its final name only
 * when it is complete, so a start that was killed half way is simply repeated.
 */
async function createSchema(sqlTool: string, postgresUrl: string): Promise<void> {
  await withClient(postgresUrl, async (client) => {
    for (const { database, schema } of STORES) {
      const update = ['update-schema', '--schema-name', schema];
      if (await exists(client, database)) {
        await runTool(sqlTool, postgresUrl, database, update);
        continue;
      }
      const unfinished = `${database}_unfinished`;
      await client.query(`DROP DATABASE IF EXISTS ${unfinished} WITH (FORCE)`);
      await client.query(`CREATE DATABASE ${unfinished}`);
      await runTool(sqlTool, postgresUrl, unfinished, ['setup-schema', '-v', '0.0']);
      await runTool(sqlTool, postgresUrl, unfinished, update);
      await renameInside(postgresUrl, unfinished, database);
      await client.query(`ALTER DATABASE ${unfinished} RENAME TO ${database}`);
    }
  });
}

/** Temporal stores the schema's version under the database's name. */
async function renameInside(postgresUrl: string, unfinished: string, database: string): Promise<void> {
  await withClient(databaseUrl(postgresUrl, unfinished), async (client) => {
    await client.query('UPDATE schema_version SET db_name = $1', [database]);
  });
}

async function exists(client: pg.Client, database: string): Promise<boolean> {
  const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [database]);
  return rowCount === 1;
}

async function runTool(
  sqlTool: string,
  postgresUrl: string,
  database: string,
  args: string[],
): Promise<void> {
  const { hostname, port, username, password } = new URL(postgresUrl);
  const env = {
    ...childEnvironment(),
    SQL_PLUGIN: 'postgres12',
    SQL_HOST: hostname,
    SQL_PORT: port,
    SQL_USER: decodeURIComponent(username),
    SQL_PASSWORD: decodeURIComponent(password),
  };
  await promisify(execFile)(sqlTool, ['--database', database, ...args], { env });
}

interface UiOptions {
  binaries: ServerBinaries;
  /** Where its configuration goes. */
  folder: string;
  logFolder: string;
  /** The server it shows. */
  address: string;
  namespace: string;
  port: number;
  /** Where it gets payloads decoded, if anywhere. */
  codecEndpoint?: string;
  onSpawn?: (name: string, pid: number) => void;
}

/** Starts the Temporal UI at http://127.0.0.1:port. */
async function startUi(options: UiOptions): Promise<Running> {
  const configFolder = join(options.folder, 'ui');
  await mkdir(configFolder, { recursive: true, mode: 0o700 });
  const url = `http://127.0.0.1:${options.port}`;
  const config = {
    temporalGrpcAddress: options.address,
    host: '127.0.0.1',
    port: options.port,
    enableUi: true,
    defaultNamespace: options.namespace,
    disableNewsFetch: true,
    cors: { allowOrigins: [url] },
    ...(options.codecEndpoint !== undefined && { codec: { endpoint: options.codecEndpoint } }),
  };
  await writeFile(join(configFolder, 'local.yaml'), JSON.stringify(config, null, 2));
  const child = await startChild({
    name: 'Temporal UI',
    command: options.binaries.ui,
    args: ['--root', options.folder, '--config', 'ui', '--env', 'local', 'start'],
    env: childEnvironment(),
    cwd: options.folder,
    logFile: join(options.logFolder, 'temporal-ui.log'),
    onSpawn: options.onSpawn,
  });
  return { exited: child.exited, stop: () => child.stop(STOP_STEPS) };
}
