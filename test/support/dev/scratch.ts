import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { TemporalSearch } from '../../../dev/temporal/find-temporal-source.ts';

/** A folder for one describe block, which everybody may enter and which is removed afterwards. */
export function scratchFolder(): { readonly path: string } {
  let path = '';
  before(async () => {
    path = await mkdtemp(join(tmpdir(), 'card-issuing-dev-'));
    await chmod(path, 0o755);
  });
  after(() => rm(path, { recursive: true, force: true }));
  return {
    get path() {
      return path;
    },
  };
}

/** An executable that stands for a program of the outside world. */
export async function writeScript(path: string, body: string): Promise<string> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, `#!/bin/sh\n${body}\n`, { mode: 0o755 });
  return path;
}

let count = 0;

/** A search of its own in a scratch folder, which finds nothing until a test puts something there. */
export function emptySearch(folder: string): TemporalSearch & { progress: string[] } {
  const progress: string[] = [];
  count++;
  return {
    searchPath: join(folder, `bin-${count}`),
    cacheFolder: join(folder, `cache-${count}`),
    cliWheel: { version: '1.9.1', sha256: '0'.repeat(64) },
    onProgress: (line) => progress.push(line),
    progress,
  };
}

/** A `temporal` executable that knows its version, and nothing else. */
export function writeCli(path: string, serverVersion: string): Promise<string> {
  return writeScript(path, `echo 'temporal version 1.0.0 (Server ${serverVersion}, UI 2.0.0)'`);
}
