import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Connection, type ConnectionOptions } from '@temporalio/client';
import { howToAdd, RETENTION, registerNamespace } from '../../platform/temporal/namespace.ts';
import {
  type Child,
  childEnvironment,
  endedAtOnce,
  type StopStep,
  startChild,
  untilReady,
} from '../process/child.ts';
import { DYNAMIC_CONFIG } from './dynamic-config.ts';
import type { TemporalSource } from './find-temporal-source.ts';

export interface RunningTemporal {
  /** `host:port` of the frontend. */
  address: string;
  namespace: string;
  /** Null if there is no UI, or none that we know of. */
  uiUrl: string | null;
  /** Where it came from, for a person. */
  source: string;
  /**
   * Resolves with how the server ended, whoever ended it. For a server that somebody else runs, it resolves
   * at {@link stop}.
   */
  exited: Promise<string>;
  stop(): Promise<void>;
}

interface TemporalOptions {
  source: TemporalSource;
  /** The stack's data folder; Temporal's own files go to `temporal/` in it, its logs to `logs/`. */
  dataDir: string;
  namespace: string;
  port: number;
  /** Undefined: no UI. */
  uiPort?: number;
  /** More options of the connection to a server at TEMPORAL_ADDRESS: API key, TLS. */
  connection?: Omit<ConnectionOptions, 'address'>;
  /** Where the UI gets payloads decoded. */
  codecEndpoint?: string;
  /** The data need not survive a crash of the machine: the CLI's server does not wait for the disk. */
  ephemeral?: boolean;
  onSpawn?: (name: string, pid: number) => void;
}

/**
 * Starts a Temporal server that has the namespace and the search attributes (docs/local-stack.md, "What it
 * starts").
 */
export async function startTemporal(options: TemporalOptions): Promise<RunningTemporal> {
  const { source } = options;
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
    // A quarter less work than with a rollback journal, which is a new file in each transaction.
    '--sqlite-pragma',
    'journal_mode=WAL',
    ...(options.ephemeral ? ['--sqlite-pragma', 'synchronous=OFF'] : []),
    ...settings,
  ];
}

/**
 * Returns once the server that `server` starts has the namespace. If it can't be registered, stops the
 * process.
 */
export async function connectAndRegister(address: string, namespace: string, server: Child): Promise<void> {
  try {
    const connection = await untilReady(server, () => connect(address), 120_000);
    const register = async () => {
      try {
        await registerNamespace(connection, namespace);
        await setRetention(connection, namespace);
      } finally {
        // Not earlier: the client keeps retrying, and on a closed connection it would fail with an unhandled
        // error.
        await connection.close();
      }
    };
    await Promise.race([register(), failsWhenEnded(server)]);
  } catch (error) {
    await server.stop(STOP_STEPS);
    throw error;
  }
}

async function connect(address: string): Promise<Connection | undefined> {
  try {
    return await Connection.connect({ address, connectTimeout: '1s' });
  } catch {
    // It listens later.
    return undefined;
  }
}

async function failsWhenEnded(server: Child): Promise<never> {
  throw endedAtOnce(server, await server.exited);
}

/** A namespace that the server created by itself can have a shorter retention than the ones we create. */
async function setRetention(connection: Connection, namespace: string): Promise<void> {
  const { config } = await connection.workflowService.describeNamespace({ namespace });
  if (String(config?.workflowExecutionRetentionTtl?.seconds) === String(RETENTION.seconds)) return;
  await connection.workflowService.updateNamespace({
    namespace,
    config: { workflowExecutionRetentionTtl: RETENTION },
  });
}

/** Everything is in its database: nothing is lost by the second step, SIGKILL. */
export const STOP_STEPS: readonly StopStep[] = [{ signal: 'SIGTERM', graceMs: 2_500 }];
