import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { readJsonFile } from '../process/read-json-file.ts';
import { writePrivateFile } from '../process/write-private-file.ts';
import { COMMON_FOLDER } from './common-folder.ts';
import { mayReach } from './may-reach.ts';
import { type PostgresUser, postgresUser } from './run-as.ts';

export interface PlaceOptions {
  /** Where the data should be. */
  dataDir: string;
  /** Remembers where it is instead. */
  locationFile: string;
  report: (line: string) => void;
}

const Location = z.object({ folder: z.string() });

/**
 * Where PostgreSQL's data is. Only as root is this a question: then the server runs as user postgres, who may not enter
 * the checkout (one under /root, say), and his data goes where he can.
 */
export async function placeCluster(options: PlaceOptions): Promise<string> {
  const user = await postgresUser();
  return user === undefined ? options.dataDir : placeData(options, user);
}

async function placeData(options: PlaceOptions, user: PostgresUser): Promise<string> {
  const { dataDir, locationFile, report } = options;
  const moved = readJsonFile(locationFile, Location)?.folder;
  if (moved !== undefined) return join(moved, 'postgres');
  const parent = dirname(dataDir);
  if (await mayReach(user, parent)) return dataDir;
  if (existsSync(dataDir)) {
    throw new Error(
      `PostgreSQL runs as user postgres, who may not enter ${parent} any more; allow it (chmod a+x on it and the folders above)`,
    );
  }
  const folder = join(COMMON_FOLDER, createHash('sha256').update(parent).digest('hex').slice(0, 16));
  await mkdir(folder, { recursive: true });
  for (const path of [COMMON_FOLDER, folder]) await chmod(path, 0o711);
  writePrivateFile(locationFile, JSON.stringify({ folder }));
  report(`PostgreSQL: user postgres may not enter ${parent}; its data is in ${folder}`);
  return join(folder, 'postgres');
}

/** The folder that holds the data in place of the data folder, if one does. */
export function movedCluster(locationFile: string): string | undefined {
  const folder = readJsonFile(locationFile, Location)?.folder;
  if (folder !== undefined && dirname(folder) !== COMMON_FOLDER) {
    throw new Error(`${locationFile} names ${folder}, which is not in ${COMMON_FOLDER}; remove both by hand`);
  }
  return folder;
}
