import { existsSync } from 'node:fs';
import { readdir, rm, rmdir } from 'node:fs/promises';
import { movedCluster } from '../postgres/place-cluster.ts';
import { ChildRegistry } from '../process/child-registry.ts';
import { stopOrphans } from '../process/stop-orphans.ts';
import { dataFolder } from './data-folder.ts';
import { takeDataFolder } from './take-data-folder.ts';

/**
 * Forgets everything a local stack keeps. Only what the stack itself made is removed, so a DATA_DIR that points to the
 * wrong folder costs nothing.
 * @throws Error while a stack runs on the folder.
 */
export async function resetStack(dataDir: string, report: (line: string) => void): Promise<void> {
  const folder = dataFolder(dataDir);
  if (!existsSync(folder.lock)) {
    report(`there is no local data in ${folder.path}`);
    return;
  }
  const lock = takeDataFolder(folder);
  try {
    await stopOrphans(new ChildRegistry(folder.children), report);
    const moved = movedCluster(folder.postgresLocation);
    if (moved !== undefined) await rm(moved, { recursive: true, force: true });
    const { path: _path, lock: lockFile, ...rest } = folder;
    for (const file of Object.values(rest)) {
      for (const name of [file, `${file}.unfinished`]) await rm(name, { recursive: true, force: true });
    }
    await rm(lockFile);
  } finally {
    lock.release();
  }
  if ((await readdir(folder.path)).length === 0) await rmdir(folder.path);
  report(`forgot the local data in ${folder.path}`);
}
