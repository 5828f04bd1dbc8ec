import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { z } from 'zod';

/** What a file of ours holds; undefined where there is no such file. A file we can't read is named, never guessed. */
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
      `${path} is not what this program writes; restore it, or begin anew without ${dirname(path)}`,
      {
        cause: error,
      },
    );
  }
}
