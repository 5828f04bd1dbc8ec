import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { howToAdd, registerNamespace } from '../../temporal/namespace.ts';
import { startBuilt } from './built-server.ts';
import { findTemporalSource } from './find-temporal-source.ts';
import type { RunningTemporal, TemporalOptions } from './running-temporal.ts';
import { startCli } from './start-cli.ts';
import type { TemporalSource } from './temporal-source.ts';

/**
 * Starts a Temporal server that has the namespace and the search attributes, from the first source that is available
 * (README.md, "Start it").
 */
export async function startTemporal(options: TemporalOptions): Promise<RunningTemporal> {
  const source = options.source ?? (await findTemporalSource(options));
  if (source.kind === 'existing') return useExisting(source, options);
  await mkdir(join(options.dataDir, 'temporal'), { recursive: true, mode: 0o700 });
  await mkdir(join(options.dataDir, 'logs'), { recursive: true, mode: 0o700 });
  return source.kind === 'cli' ? startCli(source, options) : startBuilt(source, options);
}

/** A server that somebody else runs: it gets the namespace and the search attributes it lacks, and is never stopped. */
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
