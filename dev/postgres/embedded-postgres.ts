import { dirname, join } from 'node:path';
import { childEnvironment, startChild, untilReady } from '../process/child.ts';
import { binariesFor } from './binaries.ts';
import { createCluster } from './cluster.ts';
import { clearDeadServer } from './dead-server.ts';
import { postgresUser } from './run-as.ts';
import { withClient } from './with-client.ts';

export interface RunningPostgres {
  /** The URL of the server's maintenance database. */
  url: string;
  /** Resolves with how the server ended. */
  exited: Promise<string>;
  stop(): Promise<void>;
}

interface PostgresOptions {
  dataDir: string;
  port: number;
  password: string;
  /** Extra `name=value` settings. */
  settings?: string[];
  /** Default: `postgres.log` next to the data folder. */
  logFile?: string;
  onSpawn?: (name: string, pid: number) => void;
}

/**
 * Starts PostgreSQL 18 from the npm package on loopback, and creates its data folder first if there is none.
 * Only the package's programs are used: its own start function stops the server at the first SIGINT or
 * SIGTERM, before the processes that still use it.
 */
export async function startEmbeddedPostgres(options: PostgresOptions): Promise<RunningPostgres> {
  const { dataDir, port, password } = options;
  const user = await postgresUser();
  const binaries = await binariesFor(user);
  await createCluster({ initdb: binaries.initdb, dataDir, password, user });
  await clearDeadServer(dataDir);
  const settings = [
    'max_connections=200',
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    // Neither values that are bound to statements nor rows that violate a constraint.
    'log_parameter_max_length=0',
    'log_parameter_max_length_on_error=0',
    'log_error_verbosity=terse',
    ...(options.settings ?? []),
  ];
  const child = await startChild({
    name: 'PostgreSQL',
    command: binaries.postgres,
    args: ['-D', dataDir, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])],
    env: { ...childEnvironment(), LC_ALL: 'C' },
    cwd: '/',
    user,
    logFile: options.logFile ?? join(dirname(dataDir), 'postgres.log'),
    lastSignal: 'SIGQUIT',
    onSpawn: options.onSpawn,
  });
  const url = `postgres://postgres:${password}@127.0.0.1:${port}/postgres`;
  try {
    await untilReady(child, () => isAnswering(url, dataDir));
  } catch (error) {
    await child.stop([{ signal: 'SIGINT', graceMs: 5_000 }]);
    throw error;
  }
  return {
    url,
    exited: child.exited,
    // SIGINT ends the sessions and writes a checkpoint; SIGQUIT leaves the rest to recovery at the next
    // start.
    stop: () =>
      child.stop([
        { signal: 'SIGINT', graceMs: 1_500 },
        { signal: 'SIGQUIT', graceMs: 500 },
      ]),
  };
}

const STARTING_UP = '57P03';
/** `undefined` is pg's own time limit on connecting. */
const NOT_YET = new Set([STARTING_UP, 'ECONNREFUSED', 'ECONNRESET', undefined]);

/** Whether the server takes connections. Its recovery can take any time. */
async function isAnswering(url: string, dataDir: string): Promise<boolean> {
  try {
    return await answersFrom(url, dataDir);
  } catch (error) {
    if (NOT_YET.has((error as { code?: string }).code)) return false;
    throw error;
  }
}

/** Whether our server answers there, not one that had the port before. */
async function answersFrom(url: string, dataDir: string): Promise<boolean> {
  return withClient({ connectionString: url, connectionTimeoutMillis: 5_000 }, async (client) => {
    const { rows } = await client.query('SHOW data_directory');
    return rows[0].data_directory === dataDir;
  });
}
