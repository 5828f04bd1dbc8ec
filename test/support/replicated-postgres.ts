import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../../dev/free-port.ts';
import { startEmbeddedPostgres } from '../../dev/postgres/embedded-postgres.ts';
import { migrate } from '../../platform/db/migrate.ts';
import { asOwner, createTestLogins, serviceUrlOf } from './postgres.ts';

const run = promisify(execFile);

/** A migrated server of its own with a streaming standby. */
export async function startReplicatedPostgres() {
  const folder = await mkdtemp(join(tmpdir(), 'card-issuing-replicated-'));
  // If we are root, the server runs as another user, who needs access to its data folder through this one.
  await chmod(folder, 0o755);
  const [ofPrimary, ofReplica] = [join(folder, 'primary'), join(folder, 'replica')];
  const [port, replicaPort] = [await freePort(), await freePort()];
  const startPrimary = () =>
    startEmbeddedPostgres({ dataDir: ofPrimary, port, password: 'test', settings: ['fsync=off'] });
  const startReplica = () =>
    startEmbeddedPostgres({
      ...{ dataDir: ofReplica, port: replicaPort, password: 'test', logFile: join(folder, 'replica.log') },
      settings: [
        'fsync=off',
        `primary_conninfo=host=127.0.0.1 port=${port} user=postgres password=test`,
        'wal_retrieve_retry_interval=100ms',
      ],
    });

  let primary = await startPrimary();
  await migrate(primary.url);
  await createTestLogins(primary.url);
  // With the primary stopped, its files are a base backup.
  await primary.stop();
  await run('cp', ['-a', ofPrimary, ofReplica]);
  const signal = join(ofReplica, 'standby.signal');
  await writeFile(signal, '');
  await chmod(signal, 0o666);
  primary = await startPrimary();
  let replica = await startReplica();

  const onReplica = (statement: string) => asOwner(replica.url, statement);
  return {
    databaseUrl: serviceUrlOf(primary.url),
    replicaUrl: serviceUrlOf(replica.url),
    /** The standby receives writes, but does not replay them. */
    async pauseReplay() {
      await onReplica('SELECT pg_wal_replay_pause()');
    },
    async resumeReplay() {
      await onReplica('SELECT pg_wal_replay_resume()');
    },
    async signalReplica(name: 'SIGSTOP' | 'SIGCONT') {
      const postmaster = Number.parseInt(await readFile(join(ofReplica, 'postmaster.pid'), 'utf8'), 10);
      const { stdout } = await run('pgrep', ['-P', String(postmaster)]);
      for (const pid of [postmaster, ...stdout.trim().split('\n').map(Number)]) process.kill(pid, name);
    },
    stopReplica: () => replica.stop(),
    async startReplica() {
      replica = await startReplica();
    },
    async close() {
      await replica.stop();
      await primary.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export type ReplicatedPostgres = Awaited<ReturnType<typeof startReplicatedPostgres>>;
