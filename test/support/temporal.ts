import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../dev/free-port.ts';
import type { RunningPostgres } from '../../dev/postgres/embedded-postgres.ts';
import { temporalSearch } from '../../dev/stack/temporal-search.ts';
import type { RunningTemporal } from '../../dev/temporal/running-temporal.ts';
import { startTemporal } from '../../dev/temporal/start-temporal.ts';

/**
 * The one at TEMPORAL_ADDRESS, or one of our own, which a first run downloads (the progress is shown).
 * @param postgres where TEMPORAL_SERVER=production keeps its databases
 */
export async function startTestTemporal(postgres: Pick<RunningPostgres, 'url'>): Promise<RunningTemporal> {
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
