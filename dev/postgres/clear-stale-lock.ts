import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { commandLine } from '../process/command-line.ts';

/**
 * A server that was killed leaves `postmaster.pid` behind. The next one overlooks it where no process has that pid,
 * but refuses where one has: another program by now, or a dead one that nobody has reaped (a container without init).
 */
export async function clearStaleLock(dataDir: string): Promise<void> {
  const file = join(dataDir, 'postmaster.pid');
  let content: string;
  try {
    content = await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  const pid = Number.parseInt(content, 10);
  const command = await commandLine(pid);
  if (command?.includes(dataDir) && command.includes('postgres')) return;
  await rm(file);
}
