import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../dev/free-port.ts';
import { temporalSearch } from '../../dev/stack/temporal-search.ts';
import type { RunningTemporal } from '../../dev/temporal/running-temporal.ts';
import { startTemporal } from '../../dev/temporal/start-temporal.ts';

/** The one at TEMPORAL_ADDRESS, or one of our own, which a first run downloads (the progress is shown). */
export async function startTestTemporal(): Promise<RunningTemporal> {
  const folder = await mkdtemp(join(tmpdir(), 'card-issuing-temporal-'));
  const { TEMPORAL_ADDRESS, TEMPORAL_CLI } = process.env;
  const asked = {
    TEMPORAL_ADDRESS: TEMPORAL_ADDRESS || undefined,
    TEMPORAL_CLI: TEMPORAL_CLI || undefined,
  };
  const temporal = await startTemporal({
    ...temporalSearch(asked, (line) => console.error(line)),
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
