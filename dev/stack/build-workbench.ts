import { execFile } from 'node:child_process';
import { globSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const BUILD = join(ROOT, 'workbench/dist');
const VITE = join(ROOT, 'node_modules/vite/bin/vite.js');
const run = promisify(execFile);

/**
 * Builds the workbench's pages, if what they are made of is newer. The API reads them when it starts.
 * @throws Error what is wrong with the sources
 */
export async function buildWorkbench(report: (line: string) => void): Promise<void> {
  const sources = globSync(['workbench/**/*.{ts,tsx,css,html,svg}', 'client/**/*.ts', 'package-lock.json'], {
    cwd: ROOT,
    exclude: ['**/dist*/**'],
  });
  const newestMs = Math.max(...sources.map((source) => statSync(join(ROOT, source)).mtimeMs));
  const built = statSync(join(BUILD, 'index.html'), { throwIfNoEntry: false });
  if (built !== undefined && built.mtimeMs > newestMs) return;
  report('building the workbench');
  // Beside the old build, which a stack that starts at the same moment may be reading.
  const made = `${BUILD}-${process.pid}`;
  await run(process.execPath, [VITE, 'build', 'workbench', '--outDir', made, '--logLevel', 'warn'], {
    cwd: ROOT,
  });
  rmSync(BUILD, { recursive: true, force: true });
  renameSync(made, BUILD);
}
