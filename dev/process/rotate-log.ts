import { renameSync, statSync } from 'node:fs';

const LARGEST_BYTES = 10_000_000;

/** Sets a large log aside, in the place of the one set aside before. */
export function rotateLog(file: string): void {
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat !== undefined && stat.size > LARGEST_BYTES) renameSync(file, `${file}.1`);
}
