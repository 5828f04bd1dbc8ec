import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/** An executable that stands for a program of the outside world. */
export async function writeScript(path: string, body: string): Promise<string> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, `#!/bin/sh\n${body}\n`, { mode: 0o755 });
  return path;
}
