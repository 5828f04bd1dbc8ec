import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type FileLock, tryLock } from '../../process/file-lock.ts';
import { goInstall } from './go-install.ts';
import { PACKAGES } from './packages.ts';
import { binariesIn } from './server-binaries.ts';

export interface BuildOptions {
  /** Where the binaries end up, all at once. */
  folder: string;
  searchPath: string;
  onProgress: (line: string) => void;
}

const UNFINISHED = '.unfinished-';

/** Builds the server with Go, once: whoever comes while another process builds waits for it. */
export async function buildServer(options: BuildOptions): Promise<void> {
  const { folder } = options;
  await mkdir(dirname(folder), { recursive: true });
  const lock = await waitForLock(`${folder}.lock`, options.onProgress);
  try {
    if (existsSync(folder)) return;
    await build(options);
  } finally {
    lock.release();
  }
}

async function build(options: BuildOptions): Promise<void> {
  const { folder } = options;
  await removeUnfinished(folder);
  // Never the same one twice: the compiler of a build that was killed may still be writing to its own.
  const unfinished = await mkdtemp(`${folder}${UNFINISHED}`);
  const binaries = binariesIn(unfinished);
  for (const [index, { binary, path, version }] of PACKAGES.entries()) {
    const scratch = join(unfinished, 'scratch');
    await mkdir(scratch);
    await goInstall({
      module: `${path}@${version}`,
      outputFolder: scratch,
      searchPath: options.searchPath,
      logFile: `${folder}.log`,
      onProgress: (line) =>
        options.onProgress(
          `Temporal: building ${basename(binaries[binary])} from source (${index + 1} of ${PACKAGES.length}), ${line}`,
        ),
    });
    // Two of the packages call their binary `server`.
    const [built] = await readdir(scratch);
    if (built === undefined) throw new Error(`go install ${path} left no binary in ${scratch}`);
    await rename(join(scratch, built), binaries[binary]);
    await rm(scratch, { recursive: true });
  }
  await chmod(unfinished, 0o755);
  await rename(unfinished, folder);
}

async function removeUnfinished(folder: string): Promise<void> {
  const parent = dirname(folder);
  for (const name of await readdir(parent)) {
    if (name.startsWith(basename(folder) + UNFINISHED))
      await rm(join(parent, name), { recursive: true, force: true, maxRetries: 5 });
  }
}

async function waitForLock(file: string, onProgress: (line: string) => void): Promise<FileLock> {
  for (let waits = 0; ; waits++) {
    const lock = tryLock(file);
    if (lock !== undefined) return lock;
    if (waits % 10 === 0) onProgress('Temporal: another process is building the server; waiting for it');
    await delay(500);
  }
}
