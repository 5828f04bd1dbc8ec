import { Connection } from '@temporalio/client';
import { registerNamespace } from '../register-namespace.ts';
import type { RunningTemporal, TemporalOptions } from '../running-temporal.ts';
import type { TemporalSource } from '../temporal-source.ts';

/** A server somebody else runs: it is given the namespace and the search attributes it lacks, and left running. */
export async function useExisting(
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
    await registerNamespace(connection, options.namespace);
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
