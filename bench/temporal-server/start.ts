import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort, freePorts } from '../../dev/free-port.ts';
import type { RunningPostgres } from '../../dev/postgres/embedded-postgres.ts';
import { withClient } from '../../dev/postgres/with-client.ts';
import { childEnvironment, startChild } from '../../dev/process/child.ts';
import { connectAndRegister, type RunningTemporal, STOP_STEPS } from '../../dev/temporal/running-temporal.ts';
import { buildServer, SERVER_VERSION } from './build.ts';
import { DEFAULT_STORE, dynamicConfigFile, INNER_PORTS, serverConfig, VISIBILITY_STORE } from './config.ts';

const NAMESPACE = 'default';

/** Starts Temporal's production server on PostgreSQL: the CLI's, on SQLite, is half as fast. */
export async function startProductionServer(
  postgres: Pick<RunningPostgres, 'url'>,
): Promise<RunningTemporal> {
  const binaries = await buildServer((line) => console.error(line));
  await createSchema(binaries.sqlTool, postgres.url);
  const folder = await mkdtemp(join(tmpdir(), 'card-issuing-temporal-'));
  const port = await freePort();
  const dynamicConfig = join(folder, 'dynamic-config.yaml');
  await writeFile(dynamicConfig, dynamicConfigFile());
  const configFile = join(folder, 'server.yaml');
  const config = serverConfig({
    postgres: new URL(postgres.url),
    frontendPort: port,
    innerPorts: await freePorts(INNER_PORTS),
    dynamicConfigFile: dynamicConfig,
  });
  await writeFile(configFile, JSON.stringify(config, null, 2), { mode: 0o600 });
  const server = await startChild({
    name: 'Temporal',
    command: binaries.server,
    args: ['--config-file', configFile, '--allow-no-auth', 'start'],
    env: childEnvironment(),
    cwd: folder,
    logFile: join(folder, 'temporal.log'),
  });
  const address = `127.0.0.1:${port}`;
  await connectAndRegister(address, NAMESPACE, server);
  return {
    address,
    namespace: NAMESPACE,
    uiUrl: null,
    source: `server ${SERVER_VERSION}, built from source`,
    exited: server.exited,
    stop: async () => {
      await server.stop(STOP_STEPS);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const STORES = [
  { database: DEFAULT_STORE, schema: 'postgresql/v12/temporal' },
  { database: VISIBILITY_STORE, schema: 'postgresql/v12/visibility' },
];

async function createSchema(sqlTool: string, postgresUrl: string): Promise<void> {
  for (const { database, schema } of STORES) {
    await withClient(postgresUrl, (client) => client.query(`CREATE DATABASE ${database}`));
    await runTool(sqlTool, postgresUrl, database, ['setup-schema', '-v', '0.0']);
    await runTool(sqlTool, postgresUrl, database, ['update-schema', '--schema-name', schema]);
  }
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
