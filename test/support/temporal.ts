import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../dev/free-port.ts';
import { temporalSearch } from '../../dev/stack/temporal-search.ts';
import type { RunningTemporal } from '../../dev/temporal/running-temporal.ts';
import { startTemporal } from '../../dev/temporal/start-temporal.ts';
import { testPostgres } from './postgres.ts';

let running: Promise<RunningTemporal> | undefined;
let folder: string | undefined;

/**
 * The Temporal server of this test run, started by the first test that asks for it: the one at TEMPORAL_ADDRESS, or
 * one of our own, which takes minutes when it has to be built first (the progress is shown).
 */
export function testTemporal(): Promise<Pick<RunningTemporal, 'address' | 'namespace' | 'source'>> {
  running ??= start();
  return running;
}

export async function stopTestTemporal(): Promise<void> {
  if (running === undefined) return;
  await (await running).stop();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
}

async function start(): Promise<RunningTemporal> {
  folder = await mkdtemp(join(tmpdir(), 'card-issuing-temporal-'));
  const { TEMPORAL_ADDRESS, TEMPORAL_CLI, TEMPORAL_SERVER } = process.env;
  const asked = {
    TEMPORAL_ADDRESS: TEMPORAL_ADDRESS || undefined,
    TEMPORAL_CLI: TEMPORAL_CLI || undefined,
    TEMPORAL_SERVER: TEMPORAL_SERVER === 'production' ? TEMPORAL_SERVER : 'cli',
  } as const;
  return startTemporal({
    ...temporalSearch(asked, (line) => console.error(line)),
    dataDir: folder,
    postgres: await testPostgres(),
    namespace: process.env.TEMPORAL_NAMESPACE || 'default',
    port: await freePort(),
  });
}
