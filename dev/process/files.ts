import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { z } from 'zod';

/**
 * The content of one of our files; undefined if there is no such file. @throws Error naming a file that can't
 * be read
 */
export function readJsonFile<T>(path: string, schema: z.ZodType<T>): T | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    return schema.parse(JSON.parse(text));
  } catch (error) {
    throw new Error(
      `${path} was not written by this program; restore it, or move ${dirname(path)} away and start over`,
      {
        cause: error,
      },
    );
  }
}

/**
 * Writes a file that only its owner may read. If we are killed, the file is either complete or as it was
 * before.
 */
export function writePrivateFile(path: string, content: string): void {
  const unfinished = `${path}.unfinished`;
  writeFileSync(unfinished, content, { mode: 0o600, flush: true });
  renameSync(unfinished, path);
}

const LARGEST_BYTES = 10_000_000;

/** Renames a log that has grown large; the one renamed before is replaced. */
export function rotateLog(file: string): void {
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat !== undefined && stat.size > LARGEST_BYTES) renameSync(file, `${file}.1`);
}

export interface FileLock {
  release(): void;
}

const SQLITE_BUSY = 5;

/**
 * Takes the lock that a file stands for, or returns undefined while another process has it. The system
 * releases it when its holder ends, however it ends. Node has no file locks of its own, but SQLite takes
 * them.
 */
export function tryLock(file: string): FileLock | undefined {
  const database = new DatabaseSync(file, { timeout: 0 });
  try {
    database.exec('PRAGMA journal_mode = OFF; BEGIN EXCLUSIVE');
    return { release: () => database.close() };
  } catch (error) {
    database.close();
    if ((error as { errcode?: unknown }).errcode === SQLITE_BUSY) return undefined;
    throw error;
  }
}
