import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../../dev/free-port.ts';
import { startEmbeddedPostgres } from '../../dev/postgres/embedded-postgres.ts';
import { withClient } from '../../dev/postgres/with-client.ts';
import { migrate } from '../../platform/db/migrate.ts';
import { createTestLogins, serviceUrlOf } from './postgres.ts';
import { until } from './until.ts';

const run = promisify(execFile);

/** A server of its own that archives its write-ahead log, so that it can be restored to any moment after its backup. */
export async function startRestorablePostgres() {
  const folder = await mkdtemp(join(tmpdir(), 'card-issuing-restore-'));
  // If we are root, the server runs as another user, who needs access to its data folder through this one, and writes the archive.
  await chmod(folder, 0o755);
  const [dataDir, backup, archive] = ['pg', 'backup', 'archive'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  await mkdir(archive);
  await chmod(archive, 0o777);
  const archiving = ['archive_mode=on', `archive_command=cp %p ${archive}/%f`];
  const port = await freePort();
  const start = (settings: string[]) => startEmbeddedPostgres({ dataDir, port, password: 'test', settings });
  let postgres = await start(archiving);
  await migrate(postgres.url);
  await createTestLogins(postgres.url);
  const asOwner = <Row>(statement: string): Promise<Row[]> =>
    withClient(postgres.url, async (client) => (await client.query(statement)).rows as Row[]);

  return {
    databaseUrl: serviceUrlOf(postgres.url),
    /** Copies the running server's files, as `pg_basebackup` does. Once. */
    async backUp() {
      const label = await withClient(postgres.url, async (client) => {
        await client.query(`SELECT pg_backup_start('rehearsal', fast => true)`);
        await run('cp', ['-a', dataDir, backup]);
        const { rows } = await client.query<{ labelfile: string }>('SELECT labelfile FROM pg_backup_stop()');
        return rows[0]?.labelfile ?? '';
      });
      await run('sh', ['-c', `rm -rf "$1/postmaster.pid" "$1"/pg_wal/*`, 'sh', backup]);
      await writeForServer(join(backup, 'backup_label'), label);
    },
    async mark(moment: string) {
      const [row] = await asOwner<{ wal: string }>(
        `SELECT pg_walfile_name(pg_create_restore_point('${moment}')) AS wal, pg_switch_wal()`,
      );
      await until(`${moment} is archived`, async () => {
        const [archived] = await asOwner<{ wal: string }>(
          'SELECT last_archived_wal AS wal FROM pg_stat_archiver',
        );
        return (archived?.wal ?? '') >= (row?.wal ?? '');
      });
    },
    /** Stops the server, and starts one at the same address from the backup and the archive, as it was at that moment. */
    async restore(moment: string) {
      await postgres.stop();
      await rm(dataDir, { recursive: true });
      await run('cp', ['-a', backup, dataDir]);
      await writeForServer(join(dataDir, 'recovery.signal'), '');
      postgres = await start([
        ...archiving,
        `restore_command=cp ${archive}/%f %p`,
        `recovery_target_name=${moment}`,
        'recovery_target_action=promote',
      ]);
      await until('it takes writes', async () => {
        const [row] = await asOwner<{ recovering: boolean }>('SELECT pg_is_in_recovery() AS recovering');
        return row?.recovering === false;
      });
    },
    async close() {
      await postgres.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export type RestorablePostgres = Awaited<ReturnType<typeof startRestorablePostgres>>;

/** The server has to open it for writing, whoever it runs as. */
async function writeForServer(file: string, content: string): Promise<void> {
  await writeFile(file, content);
  await chmod(file, 0o666);
}
