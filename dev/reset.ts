import { existsSync } from 'node:fs';
import { readdir, rm, rmdir } from 'node:fs/promises';
import { movedCluster } from './postgres/cluster.ts';
import { describeFailure } from './process/describe-failure.ts';
import { ChildRegistry, stopOrphans } from './process/orphans.ts';
import { type DataFolder, dataFolder, takeDataFolder } from './stack/data-folder.ts';

/** `npm run reset`: deletes the local data (docs/local-stack.md, "What it starts"). */
try {
  await resetStack(dataFolder());
} catch (error) {
  console.error(describeFailure(error));
  process.exitCode = 1;
}

/**
 * Deletes everything that a local stack keeps. Only what the stack itself created is deleted, so a DATA_DIR
 * that points to the wrong folder does no harm.
 * @throws Error while a stack runs on the folder.
 */
async function resetStack(folder: DataFolder): Promise<void> {
  if (!existsSync(folder.lock)) {
    console.log(`there is no local data in ${folder.path}`);
    return;
  }
  const lock = takeDataFolder(folder);
  try {
    await stopOrphans(new ChildRegistry(folder.children), console.log);
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
  console.log(`deleted the local data in ${folder.path}`);
}
