import { readFileSync, writeFileSync } from 'node:fs';
import { type FileLock, tryLock } from '../process/file-lock.ts';
import { type DataFolder, makeDataFolder } from './data-folder.ts';

/**
 * Makes the data folder ours until the lock is released, or until this process ends in whatever way.
 * @throws Error naming the process that has it.
 */
export function takeDataFolder(folder: DataFolder): FileLock {
  makeDataFolder(folder);
  const lock = tryLock(folder.lock);
  if (lock === undefined) {
    throw new Error(
      `a stack already runs on ${folder.path} (process ${holder(folder)}): stop it first, or set DATA_DIR to another folder`,
    );
  }
  writeFileSync(folder.holder, String(process.pid));
  return lock;
}

function holder(folder: DataFolder): string {
  try {
    return readFileSync(folder.holder, 'utf8');
  } catch (error) {
    // It has the lock, and has not yet said who it is.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'unknown';
    throw error;
  }
}
