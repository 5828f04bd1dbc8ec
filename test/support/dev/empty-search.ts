import { join } from 'node:path';
import type { TemporalSearch } from '../../../dev/temporal/temporal-source.ts';
import { writeScript } from './write-script.ts';

let count = 0;

/** A search of its own in a scratch folder, which finds nothing until a test puts something there. */
export function emptySearch(folder: string): TemporalSearch & { progress: string[] } {
  const progress: string[] = [];
  count++;
  return {
    searchPath: join(folder, `bin-${count}`),
    cacheFolder: join(folder, `cache-${count}`),
    production: false,
    cliWheel: { version: '1.9.1', sha256: '0'.repeat(64) },
    onProgress: (line) => progress.push(line),
    progress,
  };
}

/** A `temporal` executable that knows its version, and nothing else. */
export function writeCli(path: string, serverVersion: string): Promise<string> {
  return writeScript(path, `echo 'temporal version 1.0.0 (Server ${serverVersion}, UI 2.0.0)'`);
}
