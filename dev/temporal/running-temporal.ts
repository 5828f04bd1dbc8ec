import { setTimeout as delay } from 'node:timers/promises';
import { Connection, type ConnectionOptions } from '@temporalio/client';
import { RETENTION, registerNamespace } from '../../temporal/namespace.ts';
import type { RunningPostgres } from '../postgres/embedded-postgres.ts';
import { type Child, endedAtOnce, type StopStep } from '../process/child.ts';
import type { TemporalSearch, TemporalSource } from './temporal-source.ts';

export interface RunningTemporal {
  /** `host:port` of the frontend. */
  address: string;
  namespace: string;
  /** Null where there is no UI, or where we don't know of one. */
  uiUrl: string | null;
  /** Which of the sources it came from, in words. */
  source: string;
  /**
   * Resolves with how the server ended, whoever ended it. Of a server that was there before us only {@link stop} is known.
   */
  exited: Promise<string>;
  stop(): Promise<void>;
}

export interface TemporalOptions extends TemporalSearch {
  /** The stack's data folder; Temporal's own files go to `temporal/` in it, its logs to `logs/`. */
  dataDir: string;
  /** The server built from source keeps its two databases there. */
  postgres: Pick<RunningPostgres, 'url'> | undefined;
  namespace: string;
  port: number;
  /** Undefined: no UI. */
  uiPort?: number;
  /** What else the connection to a server at TEMPORAL_ADDRESS needs: API key, TLS. */
  connection?: Omit<ConnectionOptions, 'address'>;
  /** Where the UI has payloads decoded. */
  codecEndpoint?: string;
  /** Nothing has to outlive the machine: the CLI's server does not wait for the disk. */
  ephemeral?: boolean;
  /** Found before; otherwise it is searched for. */
  source?: TemporalSource;
  onSpawn?: (name: string, pid: number) => void;
}

/** Returns once the server that a process becomes has the namespace; stops the process if it can't be given it. */
export async function connectAndRegister(address: string, namespace: string, server: Child): Promise<void> {
  try {
    const connection = await connectWhenServing(address, server);
    const register = async () => {
      try {
        await registerNamespace(connection, namespace);
        await setRetention(connection, namespace);
      } finally {
        // Not before: the client asks again and again, and fails where nobody hears it if its connection is closed.
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

/** A namespace that a server made by itself can have a shorter retention than those we make. */
async function setRetention(connection: Connection, namespace: string): Promise<void> {
  const { config } = await connection.workflowService.describeNamespace({ namespace });
  if (String(config?.workflowExecutionRetentionTtl?.seconds) === String(RETENTION.seconds)) return;
  await connection.workflowService.updateNamespace({
    namespace,
    config: { workflowExecutionRetentionTtl: RETENTION },
  });
}

const LONGEST_START_MS = 120_000;

/** Connects to the server that a process becomes; fails when the process ends instead. */
async function connectWhenServing(address: string, server: Child): Promise<Connection> {
  let ended: string | undefined;
  void server.exited.then((how) => {
    ended = how;
  });
  const giveUpAt = Date.now() + LONGEST_START_MS;
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
