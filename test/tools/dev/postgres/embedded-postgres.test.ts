import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { freePort } from '../../../../dev/free-port.ts';
import { type RunningPostgres, startEmbeddedPostgres } from '../../../../dev/postgres/embedded-postgres.ts';
import { processIdentity } from '../../../../dev/process/identity.ts';
import { scratchFolder } from '../../../support/dev/scratch.ts';
import { until } from '../../../support/until.ts';

describe('startEmbeddedPostgres', () => {
  const scratch = scratchFolder();
  const start = async (name: string) =>
    startEmbeddedPostgres({ dataDir: join(scratch.path, name), port: await freePort(), password: 'right' });

  it('keeps its data through kill -9, whatever process has the pid in its old lock file', async () => {
    const dataDir = join(scratch.path, 'killed');
    let server = await start('killed');
    await query(server, 'CREATE TABLE kept AS SELECT 42 AS n');
    const lockFile = join(dataDir, 'postmaster.pid');
    const lock = await readFile(lockFile, 'utf8');
    const pid = Number.parseInt(lock, 10);
    process.kill(pid, 'SIGKILL');
    assert.equal(await server.exited, 'signal SIGKILL');
    await until('the process is gone', () => processIdentity(pid) === undefined);

    await writeFile(lockFile, lock.replace(String(pid), String(process.pid)));
    server = await start('killed');
    assert.deepEqual(await query(server, 'SELECT n FROM kept'), [{ n: 42 }]);
    await server.stop();
  });

  it('starts again although a process of the killed server lives on', async () => {
    const dataDir = join(scratch.path, 'survived');
    let server = await start('survived');
    await query(server, 'CREATE TABLE kept AS SELECT 42 AS n');
    const client = new pg.Client(server.url);
    client.on('error', () => {});
    await client.connect();
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    const backend = rows[0]?.pid as number;
    // Frozen, it does not notice that its server is dead.
    process.kill(backend, 'SIGSTOP');
    process.kill(Number.parseInt(await readFile(join(dataDir, 'postmaster.pid'), 'utf8'), 10), 'SIGKILL');
    assert.equal(await server.exited, 'signal SIGKILL');
    assert.notEqual(processIdentity(backend), undefined);

    server = await start('survived');
    assert.equal(processIdentity(backend), undefined);
    assert.deepEqual(await query(server, 'SELECT n FROM kept'), [{ n: 42 }]);
    await client.end();
    await server.stop();
  });

  it('starts over if a killed initdb left its work half done', async () => {
    await mkdir(join(scratch.path, 'half.unfinished'));
    await writeFile(join(scratch.path, 'half.unfinished', 'PG_VERSION'), '18');
    const server = await start('half');
    assert.deepEqual(await query(server, 'SELECT 1 AS n'), [{ n: 1 }]);
    await server.stop();
  });

  it('listens on loopback alone, and requires the password', async () => {
    const server = await start('guarded');
    assert.deepEqual(await query(server, 'SHOW listen_addresses'), [{ listen_addresses: '127.0.0.1' }]);
    assert.deepEqual(await query(server, 'SHOW unix_socket_directories'), [{ unix_socket_directories: '' }]);
    const url = new URL(server.url);
    url.password = 'wrong';
    await assert.rejects(new pg.Client(url.href).connect(), /password authentication failed/);
    await server.stop();
  });

  it('repeats what PostgreSQL said if it does not start, even if another server answers', async () => {
    const server = await start('taken');
    const port = Number(new URL(server.url).port);
    const second = { dataDir: join(scratch.path, 'second'), port, password: 'right' };
    await assert.rejects(startEmbeddedPostgres(second), /PostgreSQL ended at once(.|\n)*could not bind/);
    await server.stop();
  });
});

async function query(server: RunningPostgres, text: string): Promise<unknown[]> {
  const client = new pg.Client(server.url);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}
