import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { freePort } from '../../../../dev/free-port.ts';
import { type RunningPostgres, startEmbeddedPostgres } from '../../../../dev/postgres/embedded-postgres.ts';
import { scratchFolder } from '../../../support/dev/scratch.ts';

describe('startEmbeddedPostgres', () => {
  const scratch = scratchFolder();
  const start = async (name: string) =>
    startEmbeddedPostgres({ dataDir: join(scratch.path, name), port: await freePort(), password: 'right' });

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
