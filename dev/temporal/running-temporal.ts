import type { ConnectionOptions } from '@temporalio/client';
import type { RunningPostgres } from '../postgres/embedded-postgres.ts';
import type { TemporalSearch, TemporalSource } from './temporal-source.ts';

export interface RunningTemporal {
  /** `host:port` of the frontend. */
  address: string;
  namespace: string;
  /** Null where there is no UI, or where we don't know of one. */
  uiUrl: string | null;
  /** Which of the sources it came from, in words. */
  source: string;
  /** Resolves with how the server ended, whoever ended it. Of a server that was there before us only {@link stop} is known. */
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
