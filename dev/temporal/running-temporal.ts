import { setTimeout as delay } from 'node:timers/promises';
import { Connection, type ConnectionOptions } from '@temporalio/client';
import { RETENTION, registerNamespace } from '../../platform/temporal/namespace.ts';
import { type Child, endedAtOnce, type StopStep } from '../process/child.ts';
import type { TemporalSearch, TemporalSource } from './temporal-source.ts';

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

export interface TemporalOptions extends TemporalSearch {
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
  /** If left out, it is searched for. */
  source?: TemporalSource;
  onSpawn?: (name: string, pid: number) => void;
}

/**
 * Returns once the server that `server` starts has the namespace. If it can't be registered, stops the
 * process.
 */
export async function connectAndRegister(address: string, namespace: string, server: Child): Promise<void> {
  try {
    const connection = await connectWhenServing(address, server);
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

const MAX_START_MS = 120_000;

/** Connects to the server that `server` starts. Fails if the process ends instead. */
async function connectWhenServing(address: string, server: Child): Promise<Connection> {
  let ended: string | undefined;
  void server.exited.then((how) => {
    ended = how;
  });
  const giveUpAt = Date.now() + MAX_START_MS;
  while (ended === undefined) {
    try {
      return await Connection.connect({ address, connectTimeout: '1s' });
    } catch (error) {
      if (Date.now() > giveUpAt) throw error;
      await delay(100);
    }
  }
  throw endedAtOnce(server, ended);
}

/** Everything is in its database: nothing is lost by the second step, SIGKILL. */
export const STOP_STEPS: readonly StopStep[] = [{ signal: 'SIGTERM', graceMs: 2_500 }];
