import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../dev/free-port.ts';
import type { RunningPostgres } from '../../dev/postgres/embedded-postgres.ts';
import { findTemporalSource, temporalSearch } from '../../dev/temporal/find-temporal-source.ts';
import { type RunningTemporal, startTemporal } from '../../dev/temporal/start-temporal.ts';
import { bundleWorkflows } from '../../platform/temporal/bundle-workflows.ts';
import { startTestPostgres } from './postgres.ts';
import type { Servers } from './servers.ts';

/**
 * Starts what every test of a run works on: one PostgreSQL server with a migrated template, one Temporal server, and the
 * workflows, bundled once. TEST_SERVERS tells the processes of the run where they are.
 * @param startTemporal the bench has a server of its own, on the same PostgreSQL
 * @returns a function that stops them
 */
export async function startServers(
  startTemporal: (postgres: Pick<RunningPostgres, 'url'>) => Promise<RunningTemporal> = startTestTemporal,
): Promise<() => Promise<void>> {
  const cleanUp = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'card-issuing-run-'));
  cleanUp.defer(() => rm(folder, { recursive: true, force: true }));
  const bundleFile = join(folder, 'workflows.json');
  const bundling = bundleWorkflows(BUNDLER_LOGGER).then((bundle) =>
    writeFile(bundleFile, JSON.stringify({ ...bundle, code: withoutSourceMap(bundle.code) })),
  );
  const postgres = await startTestPostgres();
  cleanUp.defer(postgres.stop);
  const temporal = await startTemporal(postgres);
  cleanUp.defer(temporal.stop);
  await bundling;
  const { address, namespace, source } = temporal;
  const servers: Servers = {
    postgresUrl: postgres.url,
    temporal: { address, namespace, source },
    bundleFile,
  };
  process.env.TEST_SERVERS = JSON.stringify(servers);
  return () => cleanUp.disposeAsync();
}

/** Each worker would parse the map of four megabytes, and keep it. */
function withoutSourceMap(code: string): string {
  const map = JSON.stringify({ version: 3, file: 'workflows.js', sources: [], names: [], mappings: '' });
  const inline = `data:application/json;base64,${Buffer.from(map).toString('base64')}`;
  return `${code.slice(0, code.lastIndexOf('//# sourceMappingURL='))}//# sourceMappingURL=${inline}`;
}

const silent = () => {};
const BUNDLER_LOGGER = {
  log: silent,
  trace: silent,
  debug: silent,
  info: silent,
  warn: console.warn,
  error: console.error,
};

/** The one at TEMPORAL_ADDRESS, or one of our own, which a first run downloads (the progress is shown). */
async function startTestTemporal(): Promise<RunningTemporal> {
  const folder = await mkdtemp(join(tmpdir(), 'card-issuing-temporal-'));
  const { TEMPORAL_ADDRESS, TEMPORAL_CLI } = process.env;
  const asked = {
    TEMPORAL_ADDRESS: TEMPORAL_ADDRESS || undefined,
    TEMPORAL_CLI: TEMPORAL_CLI || undefined,
  };
  const temporal = await startTemporal({
    source: await findTemporalSource(temporalSearch(asked, (line) => console.error(line))),
    dataDir: folder,
    ephemeral: true,
    namespace: process.env.TEMPORAL_NAMESPACE || 'default',
    port: await freePort(),
  });
  return {
    ...temporal,
    stop: async () => {
      await temporal.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
