import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { migrate } from '../../db/migrate.ts';
import { freePort } from '../../dev/free-port.ts';
import { type RunningPostgres, startEmbeddedPostgres } from '../../dev/postgres/embedded-postgres.ts';
import { createTestLogins, serviceUrlOf } from './postgres.ts';

export interface OwnPostgres {
  /** The service's. */
  databaseUrl: string;
  /** kill -9 of every process of the server, and a start from what is on the disk. */
  crash(): Promise<void>;
  close(): Promise<void>;
}

/** A server that can be killed without anyone else noticing. */
export async function startOwnPostgres(): Promise<OwnPostgres> {
  const folder = await mkdtemp(join(tmpdir(), 'card-issuing-own-postgres-'));
  // As root the server runs as another user, who has to reach its data folder through this one.
  await chmod(folder, 0o755);
  const dataDir = join(folder, 'pg');
  const port = await freePort();
  const start = () => startEmbeddedPostgres({ dataDir, port, password: 'test' });
  let postgres = await start();
  await migrate(postgres.url);
  await createTestLogins(postgres.url);
  return {
    databaseUrl: serviceUrlOf(postgres.url),
    async crash() {
      const postmaster = Number.parseInt(await readFile(join(dataDir, 'postmaster.pid'), 'utf8'), 10);
      const { stdout } = await promisify(execFile)('pgrep', ['-P', String(postmaster)]);
      const backends = stdout.trim().split('\n').map(Number);
      for (const pid of [postmaster, ...backends]) kill(pid);
      assert.equal(await postgres.exited, 'signal SIGKILL');
      postgres = await startAgain(start);
    },
    async close() {
      await postgres.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    // A backend may have ended with its client.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** The new server refuses as long as a process of the old one has its shared memory. */
async function startAgain(start: () => Promise<RunningPostgres>): Promise<RunningPostgres> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start();
    } catch (error) {
      if (attempt === 20) throw error;
      await delay(100);
    }
  }
}
