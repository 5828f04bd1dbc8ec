import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ConnectionOptions } from '@temporalio/client';
import type { RunningPostgres } from '../postgres/embedded-postgres.ts';
import { startBuilt } from './built/start-built.ts';
import { startCli } from './cli/start-cli.ts';
import { useExisting } from './existing/use-existing.ts';
import { findTemporalSource, type TemporalSearch } from './find-temporal-source.ts';
import type { RunningTemporal } from './running-temporal.ts';
import type { TemporalSource } from './temporal-source.ts';

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

/**
 * Brings up a Temporal server that has the namespace and the search attributes, from the first source that is there
 * (design/runtime.md).
 */
export async function startTemporal(options: TemporalOptions): Promise<RunningTemporal> {
  const source = options.source ?? (await findTemporalSource(options));
  if (source.kind === 'existing') return useExisting(source, options);
  await mkdir(join(options.dataDir, 'temporal'), { recursive: true, mode: 0o700 });
  await mkdir(join(options.dataDir, 'logs'), { recursive: true, mode: 0o700 });
  return source.kind === 'cli' ? startCli(source, options) : startBuilt(source, options);
}
