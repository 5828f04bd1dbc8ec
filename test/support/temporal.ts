import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../dev/free-port.ts';
import { temporalSearch } from '../../dev/stack/temporal-search.ts';
import type { RunningTemporal } from '../../dev/temporal/running-temporal.ts';
import { startTemporal } from '../../dev/temporal/start-temporal.ts';
import { type TestPostgres, testPostgres } from './postgres.ts';
import { serversOfRun } from './servers-of-run.ts';

export type TestTemporal = Pick<RunningTemporal, 'address' | 'namespace' | 'source' | 'stop'>;

let running: Promise<TestTemporal> | undefined;

/**
 * The Temporal server of this process, started by the first test that asks for it: the one at TEMPORAL_ADDRESS, or
 * one of our own, which takes minutes when it has to be built first (the progress is shown).
 */
export function testTemporal(): Promise<TestTemporal> {
  const handed = serversOfRun()?.temporal;
  running ??=
    handed === undefined
      ? testPostgres().then(startTestTemporal)
      : Promise.resolve({ ...handed, stop: async () => {} });
  return running;
}

export async function stopTestTemporal(): Promise<void> {
  await (await running)?.stop();
}

export async function startTestTemporal(postgres: Pick<TestPostgres, 'url'>): Promise<TestTemporal> {
  const folder = await mkdtemp(join(tmpdir(), 'card-issuing-temporal-'));
  const { TEMPORAL_ADDRESS, TEMPORAL_CLI, TEMPORAL_SERVER } = process.env;
  const asked = {
    TEMPORAL_ADDRESS: TEMPORAL_ADDRESS || undefined,
    TEMPORAL_CLI: TEMPORAL_CLI || undefined,
    TEMPORAL_SERVER: TEMPORAL_SERVER === 'production' ? TEMPORAL_SERVER : 'cli',
  } as const;
  const temporal = await startTemporal({
    ...temporalSearch(asked, (line) => console.error(line)),
    dataDir: folder,
    postgres,
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
