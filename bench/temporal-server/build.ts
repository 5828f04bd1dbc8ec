import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { childEnvironment, endedAtOnce, startChild } from '../../dev/process/child.ts';
import { type FileLock, tryLock } from '../../dev/process/files.ts';
import { cacheFolder } from '../../dev/stack/temporal-search.ts';
import { isAtLeast } from '../../dev/temporal/temporal-source.ts';

/** 1.32.2 needs a newer Go than some machines have. */
export const SERVER_VERSION = '1.32.0';

const OLDEST_GO = '1.26';

interface ServerBinaries {
  server: string;
  sqlTool: string;
}

/** What is built, the slowest first. */
const PACKAGES: readonly { binary: keyof ServerBinaries; path: string }[] = [
  { binary: 'server', path: 'go.temporal.io/server/cmd/server' },
  { binary: 'sqlTool', path: 'go.temporal.io/server/cmd/tools/sql' },
];

const UNFINISHED = '.unfinished-';

/**
 * Builds the production server with Go, which takes a few minutes the first time. If another process is
 * already building it, waits for that build.
 * @throws {Error} there is no Go, or it is too old
 */
export async function buildServer(onProgress: (line: string) => void): Promise<ServerBinaries> {
  const folder = join(cacheFolder(process.env), `temporal-server-${SERVER_VERSION}`);
  if (existsSync(folder)) return binariesIn(folder);
  const version = await readGoVersion();
  if (version === undefined || !isAtLeast(OLDEST_GO, version))
    throw new Error(
      `The bench builds Temporal's production server, which needs Go ${OLDEST_GO} or newer (https://go.dev/dl) on PATH. Or set TEMPORAL_ADDRESS or TEMPORAL_CLI.`,
    );
  await mkdir(dirname(folder), { recursive: true });
  const lock = await waitForLock(`${folder}.lock`, onProgress);
  try {
    if (!existsSync(folder)) await build(folder, onProgress);
  } finally {
    lock.release();
  }
  return binariesIn(folder);
}

function binariesIn(folder: string): ServerBinaries {
  return { server: join(folder, 'temporal-server'), sqlTool: join(folder, 'temporal-sql-tool') };
}

async function build(folder: string, onProgress: (line: string) => void): Promise<void> {
  await removeUnfinished(folder);
  // A new folder each time: the compiler of a killed build may still be writing to the old one.
  const unfinished = await mkdtemp(`${folder}${UNFINISHED}`);
  const binaries = binariesIn(unfinished);
  for (const [index, { binary, path }] of PACKAGES.entries()) {
    const scratch = join(unfinished, 'scratch');
    await mkdir(scratch);
    const what = `building ${basename(binaries[binary])} from source (${index + 1} of ${PACKAGES.length})`;
    await goInstall({
      module: `${path}@v${SERVER_VERSION}`,
      outputFolder: scratch,
      logFile: `${folder}.log`,
      onProgress: (line) => onProgress(`Temporal: ${what}, ${line}`),
    });
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
  logFile: string;
  onProgress: (line: string) => void;
}

/** Go's proxies and caches, its C compiler, and how it fetches modules. */
const isForGo = (name: string): boolean => /^(GO\w+|CGO_\w+|CC|CXX|GIT_\w+)$/.test(name);

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

/** The version of Go on this PATH, such as `1.26.8`; undefined if there is none. */
async function readGoVersion(): Promise<string | undefined> {
  try {
    // Away from any go.mod, which could ask for another toolchain.
    const options = {
      cwd: tmpdir(),
      env: childEnvironment(isForGo),
      timeout: 20_000,
    };
    const { stdout } = await promisify(execFile)('go', ['env', 'GOVERSION'], options);
    return stdout.trim().replace(/^go/, '');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
