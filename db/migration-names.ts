import { readdir } from 'node:fs/promises';
import { basename } from 'node:path';

export const MIGRATIONS_FOLDER = new URL('./migrations/', import.meta.url);

/** The names under which the migrations of this version are recorded, in order. */
export async function expectedMigrations(): Promise<string[]> {
  const files = await readdir(MIGRATIONS_FOLDER);
  return files
    .filter((file) => file.endsWith('.sql'))
    .map((file) => basename(file, '.sql'))
    .sort();
}
