import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { childEnvironment } from '../../process/child-environment.ts';
import type { Running } from '../../process/keep-running.ts';
import { startChild } from '../../process/start-child.ts';
import { STOP_STEPS } from '../stop-steps.ts';
import type { ServerBinaries } from './server-binaries.ts';

export interface UiOptions {
  binaries: ServerBinaries;
  /** Where its configuration goes. */
  folder: string;
  logFolder: string;
  /** The server it shows. */
  address: string;
  namespace: string;
  port: number;
  /** Where it has payloads decoded, if anywhere. */
  codecEndpoint?: string;
  onSpawn?: (name: string, pid: number) => void;
}

/** Starts the Temporal UI at http://127.0.0.1:port. */
export async function startUi(options: UiOptions): Promise<Running> {
  const configFolder = join(options.folder, 'ui');
  await mkdir(configFolder, { recursive: true, mode: 0o700 });
  const url = `http://127.0.0.1:${options.port}`;
  const config = {
    temporalGrpcAddress: options.address,
    host: '127.0.0.1',
    port: options.port,
    enableUi: true,
    defaultNamespace: options.namespace,
    disableNewsFetch: true,
    cors: { allowOrigins: [url] },
    ...(options.codecEndpoint !== undefined && { codec: { endpoint: options.codecEndpoint } }),
  };
  await writeFile(join(configFolder, 'local.yaml'), JSON.stringify(config, null, 2));
  const child = await startChild({
    name: 'Temporal UI',
    command: options.binaries.ui,
    args: ['--root', options.folder, '--config', 'ui', '--env', 'local', 'start'],
    env: childEnvironment(),
    cwd: options.folder,
    logFile: join(options.logFolder, 'temporal-ui.log'),
    onSpawn: options.onSpawn,
  });
  return { exited: child.exited, stop: () => child.stop(STOP_STEPS) };
}
