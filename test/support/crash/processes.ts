import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Config } from '../../../config/service.ts';
import { type Child, startChild } from '../../../dev/process/start-child.ts';
import { testWorkflowBundle } from '../stack.ts';
import { until } from '../workflows/until.ts';
import { environmentOf } from './environment-of.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** A folder for what one test's processes write. */
export const scratchFolder = (): string => mkdtempSync(join(tmpdir(), 'card-issuing-crash-'));

/** Runs a file of the repository, given from its root, as a process of its own with this configuration. */
export function startProcess(
  config: Config,
  folder: string,
  file: string,
  options: { args?: string[]; execArgv?: string[]; env?: NodeJS.ProcessEnv } = {},
): Promise<Child> {
  return startChild({
    name: file,
    command: process.execPath,
    args: [...(options.execArgv ?? []), file, ...(options.args ?? [])],
    cwd: ROOT,
    env: {
      ...environmentOf(config),
      NODE_COMPILE_CACHE: join(tmpdir(), 'card-issuing-compile-cache'),
      ...options.env,
    },
    logFile: join(folder, `${file.replaceAll('/', '-')}.log`),
  });
}

/** An API process of its own, once it answers. @param options.file production's own unless given */
export async function startApiProcess(
  config: Config,
  folder: string,
  options: { file?: string; execArgv?: string[]; env?: NodeJS.ProcessEnv } = {},
): Promise<Child> {
  const { file = 'api/main.ts', ...others } = options;
  const api = await startProcess(config, folder, file, others);
  await until('the API answers', async () => {
    const response = await fetch(`http://${config.host}:${config.port}/healthz`).catch(
      (error: Error) => error,
    );
    return !(response instanceof Error);
  });
  return api;
}

/** As by kill -9. */
export async function kill(child: Child): Promise<void> {
  await child.stop([{ signal: 'SIGKILL', graceMs: 5_000 }]);
}

/** The bundled workflows in a file, for workers that are started often. */
export async function bundleFile(folder: string): Promise<string> {
  const { code } = await testWorkflowBundle();
  const file = join(folder, 'workflows.js');
  writeFileSync(file, code);
  return file;
}
