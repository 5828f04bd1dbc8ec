import { renameSync, writeFileSync } from 'node:fs';

/** Writes a file that only its owner may read. It is there as a whole or, should we be killed, as it was before. */
export function writePrivateFile(path: string, content: string): void {
  const unfinished = `${path}.unfinished`;
  writeFileSync(unfinished, content, { mode: 0o600, flush: true });
  renameSync(unfinished, path);
}
