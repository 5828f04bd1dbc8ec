import { execFile } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { chmod, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import type { Look, TemporalSearch } from '../find-temporal-source.ts';
import { cachedCliPath, usable } from './find-cli.ts';

/** Whoever the SDK's `createLocal` asks. */
export const DOWNLOAD_URL = 'https://temporal.download';

const ASK_TIMEOUT_MS = 5_000;
const STALL_TIMEOUT_MS = 15_000;
const REPORT_EVERY_MS = 3_000;

/** Downloads the newest CLI the way the SDK's `createLocal` does. */
export const downloadedCli: Look = async (search) => {
  const path = cachedCliPath(search);
  try {
    await download(path, search);
  } catch (error) {
    const reason = `the Temporal CLI can't be downloaded from ${search.downloadUrl}: ${wordsOf(error)}`;
    search.onProgress(`Temporal: ${reason}`);
    return reason;
  }
  return usable(path, 'downloaded', search);
};

async function download(path: string, search: TemporalSearch): Promise<void> {
  const { archiveUrl, fileToExtract } = await ask(search.downloadUrl);
  search.onProgress(`Temporal: downloading the CLI from ${archiveUrl}`);
  await mkdir(dirname(path), { recursive: true });
  const scratch = await mkdtemp(`${path}-`);
  try {
    const archive = join(scratch, 'archive.tar.gz');
    await fetchTo(archive, archiveUrl, search.onProgress);
    await promisify(execFile)('tar', ['-xzf', archive, '-C', scratch, fileToExtract]);
    const extracted = join(scratch, fileToExtract);
    await chmod(extracted, 0o755);
    await rename(extracted, path);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function ask(downloadUrl: string): Promise<{ archiveUrl: string; fileToExtract: string }> {
  const arch = process.arch === 'x64' ? 'amd64' : process.arch;
  const url = `${downloadUrl}/cli/latest?arch=${arch}&platform=${process.platform}&format=tar.gz`;
  const response = await fetch(url, { signal: AbortSignal.timeout(ASK_TIMEOUT_MS) });
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  const { archiveUrl, fileToExtract } = (await response.json()) as Record<string, unknown>;
  if (typeof archiveUrl !== 'string' || typeof fileToExtract !== 'string')
    throw new Error('an unknown answer');
  return { archiveUrl, fileToExtract };
}

async function fetchTo(file: string, url: string, onProgress: (line: string) => void): Promise<void> {
  const stalled = new AbortController();
  const timer = setTimeout(() => stalled.abort(new Error('the download stalled')), STALL_TIMEOUT_MS);
  try {
    const response = await fetch(url, { signal: stalled.signal });
    if (!response.ok || response.body === null) throw new Error(`HTTP ${response.status}`);
    const totalMb = Number(response.headers.get('content-length')) / 1e6;
    let doneMb = 0;
    let reportedAt = Date.now();
    const count = async function* (chunks: AsyncIterable<Uint8Array>) {
      for await (const chunk of chunks) {
        timer.refresh();
        doneMb += chunk.length / 1e6;
        if (Date.now() - reportedAt > REPORT_EVERY_MS) {
          reportedAt = Date.now();
          onProgress(`Temporal: ${doneMb.toFixed(0)} of ${totalMb > 0 ? totalMb.toFixed(0) : '?'} MB`);
        }
        yield chunk;
      }
    };
    await pipeline(Readable.fromWeb(response.body), count, createWriteStream(file), {
      signal: stalled.signal,
    });
  } finally {
    clearTimeout(timer);
  }
}

function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message;
}
