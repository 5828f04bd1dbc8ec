import { join } from 'node:path';
import { type Child, childEnvironment, startChild } from '../process/child.ts';
import {
  connectAndRegister,
  type RunningTemporal,
  STOP_STEPS,
  type TemporalOptions,
} from './running-temporal.ts';
import { DYNAMIC_CONFIG } from './server-config.ts';
import type { TemporalSource } from './temporal-source.ts';

/** Runs `temporal server start-dev`, whose data is one SQLite file and whose UI is in the same process. */
export async function startCli(
  source: Extract<TemporalSource, { kind: 'cli' }>,
  options: TemporalOptions,
): Promise<RunningTemporal> {
  const { namespace, port, uiPort } = options;
  const address = `127.0.0.1:${port}`;
  const child: Child = await startChild({
    name: 'Temporal',
    command: source.path,
    args: argumentsOf(options),
    env: childEnvironment(),
    cwd: join(options.dataDir, 'temporal'),
    logFile: join(options.dataDir, 'logs', 'temporal.log'),
    onSpawn: options.onSpawn,
  });
  await connectAndRegister(address, namespace, child);
  return {
    address,
    namespace,
    uiUrl: uiPort === undefined ? null : `http://127.0.0.1:${uiPort}`,
    source: source.label,
    exited: child.exited,
    stop: () => child.stop(STOP_STEPS),
  };
}

function argumentsOf(options: TemporalOptions): string[] {
  const { uiPort, codecEndpoint } = options;
  const settings = Object.entries(DYNAMIC_CONFIG).flatMap(([name, value]) => [
    '--dynamic-config-value',
    `${name}=${JSON.stringify(value)}`,
  ]);
  return [
    ...['server', 'start-dev', '--ip', '127.0.0.1', '--port', String(options.port)],
    ...['--db-filename', join(options.dataDir, 'temporal', 'temporal.db'), '--namespace', options.namespace],
    ...['--log-level', 'warn', '--log-format', 'json'],
    ...(uiPort === undefined ? ['--headless'] : ['--ui-port', String(uiPort)]),
    ...(codecEndpoint === undefined ? [] : ['--ui-codec-endpoint', codecEndpoint]),
    ...(options.ephemeral ? ['--sqlite-pragma', 'synchronous=OFF'] : []),
    ...settings,
  ];
}
