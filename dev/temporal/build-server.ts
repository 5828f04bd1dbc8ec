import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { childEnvironment, endedAtOnce, isForGo, startChild } from '../process/child.ts';
import { type FileLock, tryLock } from '../process/files.ts';
import {
  binariesIn,
  isAtLeast,
  type Look,
  type ServerBinaries,
  type TemporalSearch,
} from './temporal-source.ts';

export const cachedBuild: Look = async (search) => {
  const folder = buildFolder(search);
  if (!existsSync(folder)) return `no build in ${folder}`;
  return {
    kind: 'built',
    label: `server ${SERVER_VERSION}, built from source before`,
    binaries: binariesIn(folder),
  };
};

/** Builds the production server and its UI, which takes a few minutes the first time. */
export const freshBuild: Look = async (search) => {
  const version = await readGoVersion(search.searchPath);
  if (version === undefined) return "it can't be built from source: there is no `go` on PATH";
  if (!isAtLeast(OLDEST_GO, version)) {
    return `it can't be built from source: Go is ${version}, and ${OLDEST_GO} or newer is needed`;
  }
  try {
    await buildServer({
      folder: buildFolder(search),
      searchPath: search.searchPath,
      onProgress: search.onProgress,
    });
  } catch (error) {
    return `building it from source failed: ${error instanceof Error ? error.message : error}`;
  }
  const binaries = binariesIn(buildFolder(search));
  return { kind: 'built', label: `server ${SERVER_VERSION}, built from source`, binaries };
};

function buildFolder(search: TemporalSearch): string {
  return join(search.cacheFolder, `temporal-server-${SERVER_VERSION}`);
}

interface BuildOptions {
  /** Where the binaries end up, all at once. */
  folder: string;
  searchPath: string;
  onProgress: (line: string) => void;
}

const UNFINISHED = '.unfinished-';

/** Builds the server with Go. If another process is already building it, waits for that build. */
async function buildServer(options: BuildOptions): Promise<void> {
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
  // A new folder each time: the compiler of a killed build may still be writing to the old one.
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

interface GoInstallOptions {
  /** `path@version`. */
  module: string;
  outputFolder: string;
  searchPath: string;
  logFile: string;
  onProgress: (line: string) => void;
}

const REPORT_EVERY_MS = 5_000;

/** Compiles one program of a published module, and reports every few seconds for how long. */
async function goInstall(options: GoInstallOptions): Promise<void> {
  const startedAt = Date.now();
  const report = () => options.onProgress(`${Math.round((Date.now() - startedAt) / 1000)} s`);
  const child = await startChild({
    name: `go install ${options.module}`,
    command: 'go',
    args: ['install', '-ldflags=-s -w', '-trimpath', options.module],
    env: {
      ...childEnvironment(isForGo),
      PATH: options.searchPath,
      GOBIN: options.outputFolder,
      GOFLAGS: '-mod=mod',
    },
    // Away from any go.mod.
    cwd: tmpdir(),
    logFile: options.logFile,
  });
  report();
  const timer = setInterval(report, REPORT_EVERY_MS);
  try {
    const how = await child.exited;
    if (how !== 'exit code 0') throw endedAtOnce(child, how);
  } finally {
    clearInterval(timer);
  }
}

/** 1.32.2 needs a newer Go than some machines have. */
const SERVER_VERSION = '1.32.0';

interface GoPackage {
  /** Which of the binaries it becomes. */
  binary: keyof ServerBinaries;
  path: string;
  version: string;
}

/** What is built, the slowest first. */
const PACKAGES: readonly GoPackage[] = [
  { binary: 'server', path: 'go.temporal.io/server/cmd/server', version: `v${SERVER_VERSION}` },
  { binary: 'sqlTool', path: 'go.temporal.io/server/cmd/tools/sql', version: `v${SERVER_VERSION}` },
  { binary: 'ui', path: 'github.com/temporalio/ui-server/v2/cmd/server', version: 'v2.54.1' },
];

const OLDEST_GO = '1.26';

/** The version of Go on this PATH, such as `1.26.8`; undefined if there is none. */
async function readGoVersion(searchPath: string): Promise<string | undefined> {
  try {
    // Away from any go.mod, which could ask for another toolchain.
    const options = {
      cwd: tmpdir(),
      env: { ...childEnvironment(isForGo), PATH: searchPath },
      timeout: 20_000,
    };
    const { stdout } = await promisify(execFile)('go', ['env', 'GOVERSION'], options);
    return stdout.trim().replace(/^go/, '');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
