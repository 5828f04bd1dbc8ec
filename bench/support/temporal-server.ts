import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort, freePorts } from '../../dev/free-port.ts';
import type { RunningPostgres } from '../../dev/postgres/embedded-postgres.ts';
import { withClient } from '../../dev/postgres/with-client.ts';
import { childEnvironment, startChild } from '../../dev/process/child.ts';
import { DYNAMIC_CONFIG } from '../../dev/temporal/dynamic-config.ts';
import { cacheFolder } from '../../dev/temporal/find-temporal-source.ts';
import { connectAndRegister, type RunningTemporal, STOP_STEPS } from '../../dev/temporal/start-temporal.ts';

/** 1.32.2 needs a newer Go than some machines have. */
const VERSION = '1.32.0';
const NAMESPACE = 'default';
/** Temporal's own databases, each with the folder of its schema. */
const STORES = {
  temporal: 'postgresql/v12/temporal',
  temporal_visibility: 'postgresql/v12/visibility',
};

/** Starts Temporal's production server on PostgreSQL: the CLI's, on SQLite, is half as fast. */
export async function startProductionServer({ url }: Pick<RunningPostgres, 'url'>): Promise<RunningTemporal> {
  const server = await build('cmd/server');
  const sqlTool = await build('cmd/tools/sql');
  for (const [database, schema] of Object.entries(STORES)) {
    await withClient(url, (client) => client.query(`CREATE DATABASE ${database}`));
    await runTool(sqlTool, url, ['--database', database, 'setup-schema', '-v', '0.0']);
    await runTool(sqlTool, url, ['--database', database, 'update-schema', '--schema-name', schema]);
  }
  const folder = await mkdtemp(join(tmpdir(), 'card-issuing-temporal-'));
  const port = await freePort();
  const configFile = join(folder, 'server.yaml');
  const dynamicConfigFile = join(folder, 'dynamic-config.yaml');
  // JSON is valid YAML.
  const dynamicConfig = Object.entries(DYNAMIC_CONFIG).map(([name, value]) => [name, [{ value }]]);
  await writeFile(dynamicConfigFile, JSON.stringify(Object.fromEntries(dynamicConfig)));
  const config = serverConfig(new URL(url), port, await freePorts(7), dynamicConfigFile);
  await writeFile(configFile, JSON.stringify(config), { mode: 0o600 });
  const child = await startChild({
    name: 'Temporal',
    command: server,
    args: ['--config-file', configFile, '--allow-no-auth', 'start'],
    cwd: folder,
    logFile: join(folder, 'temporal.log'),
  });
  const address = `127.0.0.1:${port}`;
  await connectAndRegister(address, NAMESPACE, child);
  return {
    address,
    namespace: NAMESPACE,
    uiUrl: null,
    source: `server ${VERSION}, built from source`,
    exited: child.exited,
    stop: async () => {
      await child.stop(STOP_STEPS);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Go's proxies and caches, its C compiler, and how it fetches modules. */
const isForGo = (name: string): boolean => /^(GO\w+|CGO_\w+|CC|CXX|GIT_\w+)$/.test(name);

/**
 * Builds a program of Temporal's with Go, which takes a few minutes the first time. Go itself shares its work
 * with a build in another process.
 * @returns its path
 */
async function build(program: string): Promise<string> {
  const folder = join(cacheFolder(), `temporal-server-${VERSION}`);
  const path = join(folder, program.replaceAll('/', '-'));
  if (existsSync(path)) return path;
  console.error(`Temporal: building ${program} ${VERSION} from source with Go`);
  await mkdir(folder, { recursive: true });
  const unfinished = await mkdtemp(`${path}-`);
  const go = spawn(
    'go',
    ['install', '-ldflags=-s -w', '-trimpath', `go.temporal.io/server/${program}@v${VERSION}`],
    {
      env: { ...childEnvironment(isForGo), GOBIN: unfinished, GOFLAGS: '-mod=mod' },
      // Away from any go.mod.
      cwd: tmpdir(),
      stdio: ['ignore', 'inherit', 'inherit'],
    },
  );
  try {
    const [code] = await once(go, 'exit');
    if (code !== 0) throw new Error(`go install ended with ${code}`);
    await rename(join(unfinished, program.split('/').at(-1) ?? ''), path);
    return path;
  } catch (error) {
    throw new Error(
      "The bench builds Temporal's production server, which needs Go 1.26 or newer (https://go.dev/dl) on PATH. " +
        'Or set TEMPORAL_ADDRESS or TEMPORAL_CLI.',
      { cause: error },
    );
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
}

async function runTool(sqlTool: string, postgresUrl: string, args: string[]): Promise<void> {
  const { hostname, port, username, password } = new URL(postgresUrl);
  const env = {
    ...childEnvironment(),
    SQL_PLUGIN: 'postgres12',
    SQL_HOST: hostname,
    SQL_PORT: port,
    SQL_USER: decodeURIComponent(username),
    SQL_PASSWORD: decodeURIComponent(password),
  };
  await promisify(execFile)(sqlTool, args, { env });
}

/**
 * The configuration of a single server that listens on loopback only.
 * @param innerPorts seven, through which the server's parts talk to each other
 */
function serverConfig(
  postgres: URL,
  frontendPort: number,
  innerPorts: readonly number[],
  dynamicConfigFile: string,
): object {
  const [frontendMember, matching, matchingMember, history, historyMember, worker, workerMember] = innerPorts;
  const rpc = (grpcPort: number | undefined, membershipPort: number | undefined) => ({
    rpc: { grpcPort, membershipPort, bindOnLocalHost: true },
  });
  const sql = (databaseName: keyof typeof STORES, maxConns: number) => ({
    sql: {
      pluginName: 'postgres12',
      databaseName,
      connectAddr: postgres.host,
      connectProtocol: 'tcp',
      user: decodeURIComponent(postgres.username),
      password: decodeURIComponent(postgres.password),
      maxConns,
      maxIdleConns: maxConns,
      maxConnLifetime: '1h',
    },
  });
  return {
    log: { stdout: true, level: 'warn' },
    persistence: {
      defaultStore: 'default',
      visibilityStore: 'visibility',
      numHistoryShards: 4,
      datastores: { default: sql('temporal', 40), visibility: sql('temporal_visibility', 10) },
    },
    global: { membership: { maxJoinDuration: '30s', broadcastAddress: '127.0.0.1' } },
    services: {
      frontend: rpc(frontendPort, frontendMember),
      matching: rpc(matching, matchingMember),
      history: rpc(history, historyMember),
      worker: rpc(worker, workerMember),
    },
    clusterMetadata: {
      enableGlobalNamespace: false,
      failoverVersionIncrement: 10,
      masterClusterName: 'active',
      currentClusterName: 'active',
      clusterInformation: {
        active: {
          enabled: true,
          initialFailoverVersion: 1,
          rpcName: 'frontend',
          rpcAddress: `127.0.0.1:${frontendPort}`,
        },
      },
    },
    dcRedirectionPolicy: { policy: 'noop' },
    archival: { history: { state: 'disabled' }, visibility: { state: 'disabled' } },
    dynamicConfigClient: { filepath: dynamicConfigFile, pollInterval: '60s' },
  };
}
