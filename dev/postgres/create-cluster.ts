import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chown, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { childEnvironment } from '../process/child-environment.ts';
import type { PostgresUser } from './run-as.ts';

export interface ClusterOptions {
  initdb: string;
  dataDir: string;
  password: string;
  user: PostgresUser | undefined;
}

/** Makes the data folder if there is none. It appears in one step: what a killed initdb left behind is made anew. */
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
