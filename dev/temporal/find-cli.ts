import { execFile } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import type { CliWheel, Look, TemporalSearch, TemporalSource } from './temporal-source.ts';

/** The CLI that TEMPORAL_CLI names. If it does not work, that is an error. */
export const namedCli: Look = async (search) => {
  const path = search.temporalCli;
  if (path === undefined) return 'TEMPORAL_CLI is not set';
  try {
    return await sourceOf(path, 'TEMPORAL_CLI', search);
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
export function cachedCliPath(
  { cacheFolder }: Pick<TemporalSearch, 'cacheFolder'>,
  { version, sha256 }: CliWheel,
): string {
  return join(cacheFolder, `temporal-cli-${version}-${sha256.slice(0, 16)}`, 'temporal');
}

/** A CLI that nobody named: if it does not work or is too old, that is reported and the search goes on. */
export async function usable(
  path: string,
  from: string,
  search: TemporalSearch,
): Promise<TemporalSource | string> {
  try {
    return await sourceOf(path, from, search);
  } catch (error) {
    const reason = `${path} (${from}) does not work: ${error instanceof Error ? error.message : error}`;
    search.onProgress(`Temporal: ${reason}; trying the next source`);
    return reason;
  }
}

async function sourceOf(
  path: string,
  from: string,
  search: TemporalSearch,
): Promise<TemporalSource | string> {
  const version = await serverVersionOf(path);
  if (isNewEnough(version)) {
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

/** The version of the server in a `temporal` executable, which prints `temporal version 1.9.0 (Server 1.32.0, …)`. */
async function serverVersionOf(path: string): Promise<string> {
  const { stdout } = await promisify(execFile)(path, ['--version'], { timeout: 20_000 });
  const version = /\bServer v?(\d+\.\d+[\w.-]*)/.exec(stdout)?.[1];
  if (version === undefined) {
    throw new Error(`${path} --version does not name its server: ${stdout.trim().slice(0, 200)}`);
  }
  return version;
}

function isNewEnough(serverVersion: string): boolean {
  const [major = 0, minor = 0] = serverVersion.split('.').map(Number);
  const [oldestMajor = 0, oldestMinor = 0] = OLDEST_SERVER.split('.').map(Number);
  return major > oldestMajor || (major === oldestMajor && minor >= oldestMinor);
}
