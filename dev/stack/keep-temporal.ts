import { join } from 'node:path';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { rotateLog } from '../process/files.ts';
import { keepRunning } from '../process/keep-running.ts';
import type { TemporalSource } from '../temporal/find-temporal-source.ts';
import { type RunningTemporal, startTemporal } from '../temporal/start-temporal.ts';
import type { DataFolder } from './data-folder.ts';
import type { Ports } from './ports.ts';
import type { Settings } from './settings.ts';

interface KeepTemporalOptions {
  folder: DataFolder;
  settings: Settings;
  source: TemporalSource;
  ports: Ports;
  /** Where the UI gets payloads decrypted. */
  codecEndpoint: string | undefined;
  report: (line: string) => void;
  onSpawn: (name: string, pid: number) => void;
  disposables: AsyncDisposableStack;
}

/** Starts the Temporal server that was found. A server of our own is restarted whenever it ends. */
export async function keepTemporal(options: KeepTemporalOptions): Promise<RunningTemporal> {
  const { folder, settings, source, ports, report } = options;
  report(`starting Temporal: ${source.label}`);
  rotateLog(join(folder.logs, 'temporal.log'));
  // The SDK reads TEMPORAL_TLS_… and the user's profile; the API key may have come from a file.
  const asked = { ...process.env, TEMPORAL_API_KEY: settings.TEMPORAL_API_KEY } as Record<string, string>;
  const connection =
    source.kind === 'existing'
      ? loadClientConnectConfig({ overrideEnvVars: asked }).connectionOptions
      : undefined;
  const kept = await keepRunning({
    name: 'Temporal',
    report,
    start: () =>
      startTemporal({
        source,
        dataDir: folder.path,
        namespace: settings.TEMPORAL_NAMESPACE,
        port: ports.temporal,
        uiPort: ports.temporalUi,
        codecEndpoint: options.codecEndpoint,
        connection,
        onSpawn: options.onSpawn,
      }),
  });
  options.disposables.defer(() => kept.stop());
  return kept.first;
}
