import { join } from 'node:path';
import { keepRunning } from '../../process/keep-running.ts';
import { connectAndRegister } from '../connect-and-register.ts';
import type { RunningTemporal, TemporalOptions } from '../running-temporal.ts';
import { STOP_STEPS } from '../stop-steps.ts';
import type { TemporalSource } from '../temporal-source.ts';
import { startBuiltServer } from './start-built-server.ts';
import { startUi } from './start-ui.ts';

/** Runs the server built from source, and its UI beside it, which is started again should it end. */
export async function startBuilt(
  source: Extract<TemporalSource, { kind: 'built' }>,
  options: TemporalOptions,
): Promise<RunningTemporal> {
  if (options.postgres === undefined) throw new Error('a Temporal server built from source needs PostgreSQL');
  const { namespace, port, uiPort } = options;
  const address = `127.0.0.1:${port}`;
  const shared = {
    binaries: source.binaries,
    folder: join(options.dataDir, 'temporal'),
    logFolder: join(options.dataDir, 'logs'),
    onSpawn: options.onSpawn,
  };
  const server = await startBuiltServer({ ...shared, postgresUrl: options.postgres.url, port });
  await connectAndRegister(address, namespace, server);
  const ui = uiPort === undefined ? undefined : await keepUi(uiPort);
  const stop = async () => {
    await Promise.all([ui?.stop(), server.stop(STOP_STEPS)]);
  };
  return {
    address,
    namespace,
    uiUrl: ui === undefined ? null : `http://127.0.0.1:${uiPort}`,
    source: source.label,
    // The UI goes with its server: the next start brings both.
    exited: server.exited.then(async (how) => {
      await ui?.stop();
      return how;
    }),
    stop,
  };

  function keepUi(port: number) {
    const start = () =>
      startUi({ ...shared, address, namespace, port, codecEndpoint: options.codecEndpoint });
    return keepRunning({ name: 'Temporal UI', start, report: options.onProgress });
  }
}
