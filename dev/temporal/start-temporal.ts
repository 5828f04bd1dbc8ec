import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { howToAdd, registerNamespace } from '../../platform/temporal/namespace.ts';
import { childEnvironment, startChild } from '../process/child.ts';
import { DYNAMIC_CONFIG } from './dynamic-config.ts';
import { findTemporalSource } from './find-temporal-source.ts';
import {
  connectAndRegister,
  type RunningTemporal,
  STOP_STEPS,
  type TemporalOptions,
} from './running-temporal.ts';
import type { TemporalSource } from './temporal-source.ts';

/**
 * Starts a Temporal server that has the namespace and the search attributes, from the first source that is
 * available (docs/local-stack.md, "What it starts").
 */
export async function startTemporal(options: TemporalOptions): Promise<RunningTemporal> {
  const source = options.source ?? (await findTemporalSource(options));
  if (source.kind === 'existing') return useExisting(source, options);
  await mkdir(join(options.dataDir, 'temporal'), { recursive: true, mode: 0o700 });
  await mkdir(join(options.dataDir, 'logs'), { recursive: true, mode: 0o700 });
  return startCli(source, options);
}

/**
 * A server that somebody else runs: it gets the namespace and the search attributes it lacks, and is never
 * stopped.
 */
async function useExisting(
  source: Extract<TemporalSource, { kind: 'existing' }>,
  options: Pick<TemporalOptions, 'namespace' | 'connection'>,
): Promise<RunningTemporal> {
  const { address, label } = source;
  let connection: Connection;
  try {
    connection = await Connection.connect({ ...options.connection, address, connectTimeout: '10s' });
  } catch (error) {
    throw new Error(
      `no Temporal server answers at TEMPORAL_ADDRESS ${address}; start it, or unset TEMPORAL_ADDRESS to have one started`,
      { cause: error },
    );
  }
  try {
    const { missing } = await registerNamespace(connection, options.namespace);
    if (missing.length > 0) throw new Error(howToAdd(options.namespace, missing));
  } finally {
    await connection.close();
  }
  const { promise: exited, resolve: letGo } = Promise.withResolvers<string>();
  return {
    address,
    namespace: options.namespace,
    uiUrl: null,
    source: label,
    exited,
    stop: async () => letGo('let go'),
  };
}

/** Runs `temporal server start-dev`, whose data is one SQLite file and whose UI is in the same process. */
async function startCli(
  source: Extract<TemporalSource, { kind: 'cli' }>,
  options: TemporalOptions,
): Promise<RunningTemporal> {
  const { namespace, port, uiPort } = options;
  const address = `127.0.0.1:${port}`;
  const child = await startChild({
    name: 'Temporal',
    command: source.path,
    args: cliArguments(options),
    env: childEnvironment(),
    cwd: join(options.dataDir, 'temporal'),
    logFile: join(options.dataDir, 'logs', 'temporal.log'),
    onSpawn: options.onSpawn,
  });
  await connectAndRegister(address, namespace, child);
  return {
    address,
    namespace,
    uiUrl: uiPort === undefined ? null : `http://127.0.0.1:${uiPort}`,
    source: source.label,
    exited: child.exited,
    stop: () => child.stop(STOP_STEPS),
  };
}

function cliArguments(options: TemporalOptions): string[] {
  const { uiPort, codecEndpoint } = options;
  const settings = Object.entries(DYNAMIC_CONFIG).flatMap(([name, value]) => [
    '--dynamic-config-value',
    `${name}=${JSON.stringify(value)}`,
  ]);
  return [
    'server',
    'start-dev',
    '--ip',
    '127.0.0.1',
    '--port',
    String(options.port),
    '--db-filename',
    join(options.dataDir, 'temporal', 'temporal.db'),
    '--namespace',
    options.namespace,
    '--log-level',
    'warn',
    '--log-format',
    'json',
    ...(uiPort === undefined ? ['--headless'] : ['--ui-port', String(uiPort)]),
    ...(codecEndpoint === undefined ? [] : ['--ui-codec-endpoint', codecEndpoint]),
    ...(options.ephemeral ? ['--sqlite-pragma', 'synchronous=OFF'] : []),
    ...settings,
  ];
}
