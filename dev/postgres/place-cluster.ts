import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { readJsonFile } from '../process/read-json-file.ts';
import { writePrivateFile } from '../process/write-private-file.ts';
import { installedBinaries, type PostgresBinaries } from './binaries.ts';
import { copyBinaries } from './copy-binaries.ts';
import { mayReach } from './may-reach.ts';
import { postgresUser } from './run-as.ts';

export interface PlaceOptions {
  /** Where the data should be. */
  dataDir: string;
  /** Remembers where it is instead. */
  locationFile: string;
  report: (line: string) => void;
}

const Location = z.object({ folder: z.string() });

/** What user postgres can reach on every machine, whoever owns the checkout. */
const COMMON_FOLDER = '/var/lib/virtual-card-issuing-api';

/**
 * Where PostgreSQL's data and programs are. Only as root is this a question: then the server runs as user postgres,
 * who may not enter the checkout (one under /root, say). What he can't reach there is put where he can.
 */
export async function placeCluster(
  options: PlaceOptions,
): Promise<{ dataDir: string; binaries: PostgresBinaries }> {
  const installed = await installedBinaries();
  const user = await postgresUser();
  if (user === undefined) return { dataDir: options.dataDir, binaries: installed };
  const binaries = (await mayReach(user, installed.postgres))
    ? installed
    : await copyBinaries(installed, COMMON_FOLDER);
  if (binaries !== installed)
    options.report(
      `PostgreSQL: user postgres can't reach the installed programs; a copy is in ${COMMON_FOLDER}`,
    );
  return { dataDir: await placeData(options, user), binaries };
}

async function placeData(options: PlaceOptions, user: { uid: number; gid: number }): Promise<string> {
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
