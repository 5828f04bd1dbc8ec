import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePorts } from '../free-port.ts';
import { urlOf } from '../postgres/logins.ts';
import { withClient } from '../postgres/with-client.ts';
import { type Child, childEnvironment, startChild } from '../process/child.ts';
import { keepRunning, type Running } from '../process/keep-running.ts';
import {
  connectAndRegister,
  type RunningTemporal,
  STOP_STEPS,
  type TemporalOptions,
} from './running-temporal.ts';
import { DEFAULT_STORE, dynamicConfigFile, INNER_PORTS, serverConfig } from './server-config.ts';
import { createSchema } from './server-schema.ts';
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
  await withClient(urlOf(postgresUrl, DEFAULT_STORE), async (client) => {
    await client.query('DELETE FROM cluster_membership');
  });
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
