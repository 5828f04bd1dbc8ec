import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { childEnvironment } from '../process/child.ts';
import { readJsonFile, writePrivateFile } from '../process/files.ts';
import { COMMON_FOLDER } from './binaries.ts';
import { mayReach, type PostgresUser, postgresUser } from './run-as.ts';

interface PlaceOptions {
  /** Where the data should be. */
  dataDir: string;
  /** The file that says where it is if it is elsewhere. */
  locationFile: string;
  report: (line: string) => void;
}

const Location = z.object({ folder: z.string() });

/**
 * Where PostgreSQL's data is. It differs from `dataDir` only if we are root: the server then runs as user
 * postgres, who may not enter the checkout (one under /root, say), so the data goes where that user can.
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

/** The folder that holds the data instead of the data folder, if there is one. */
export function movedCluster(locationFile: string): string | undefined {
  const folder = readJsonFile(locationFile, Location)?.folder;
  if (folder !== undefined && dirname(folder) !== COMMON_FOLDER) {
    throw new Error(`${locationFile} names ${folder}, which is not in ${COMMON_FOLDER}; remove both by hand`);
  }
  return folder;
}

interface ClusterOptions {
  initdb: string;
  dataDir: string;
  password: string;
  user: PostgresUser | undefined;
}

/**
 * Creates the data folder if there is none. It appears in one step, so a killed initdb leaves nothing half
 * done.
 */
export async function createCluster(options: ClusterOptions): Promise<void> {
  const { dataDir, user } = options;
  if (existsSync(dataDir)) return;
  const unfinished = `${dataDir}.unfinished`;
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(unfinished, { mode: 0o700 });
  const secrets = await mkdtemp(join(tmpdir(), 'card-issuing-initdb-'));
  const passwordFile = join(secrets, 'password');
  try {
    await writeFile(passwordFile, `${options.password}\n`, { mode: 0o600 });
    if (user !== undefined) {
      for (const path of [unfinished, secrets, passwordFile]) await chown(path, user.uid, user.gid);
    }
    await promisify(execFile)(
      options.initdb,
      [
        `--pgdata=${unfinished}`,
        '--username=postgres',
        `--pwfile=${passwordFile}`,
        '--auth=scram-sha-256',
        '--encoding=UTF8',
        '--locale=C',
      ],
      { ...user, cwd: '/', env: { ...childEnvironment(), LC_ALL: 'C' } },
    );
  } finally {
    await rm(secrets, { recursive: true, force: true });
  }
  await rename(unfinished, dataDir);
}
