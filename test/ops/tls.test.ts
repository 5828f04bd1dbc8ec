import assert from 'node:assert/strict';
import { chmod, chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../dev/free-port.ts';
import { type RunningPostgres, startEmbeddedPostgres } from '../../dev/postgres/embedded-postgres.ts';
import { postgresUser } from '../../dev/postgres/run-as.ts';
import { openOrm } from '../../platform/db/orm.ts';
import { query } from '../../platform/db/sql.ts';
import { createAuthority } from '../support/adapters/webhooks/tls.ts';

describe('the connections to a PostgreSQL with TLS', () => {
  let folder: string;
  let server: RunningPostgres;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'card-issuing-tls-'));
    // If we are root, the server runs as another user, who needs access to its data folder through this one.
    await chmod(folder, 0o755);
    const authority = createAuthority('Trusted');
    const { cert, key } = authority.issue({ hosts: ['127.0.0.1'] });
    await writeFile(join(folder, 'ca.pem'), authority.ca);
    await writeFile(join(folder, 'stranger.pem'), createAuthority('Stranger').ca);
    await writeFile(join(folder, 'server.pem'), cert);
    await writeFile(join(folder, 'server.key'), key, { mode: 0o600 });
    const user = await postgresUser();
    if (user !== undefined) await chown(join(folder, 'server.key'), user.uid, user.gid);
    server = await startEmbeddedPostgres({
      dataDir: join(folder, 'pg'),
      port: await freePort(),
      password: 'test',
      settings: [
        'fsync=off',
        'ssl=on',
        `ssl_cert_file=${folder}/server.pem`,
        `ssl_key_file=${folder}/server.key`,
      ],
    });
  });

  after(async () => {
    await server?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  async function isEncrypted(parameters: string): Promise<boolean> {
    const databaseUrl = `${server.url}${parameters}`;
    const orm = await openOrm({ databaseUrl, poolSize: 1, onOwnerLogin: () => {} });
    try {
      const [row] = await query<{ ssl: boolean }>(
        orm.em.fork(),
        'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()',
      );
      return row?.ssl ?? false;
    } finally {
      await orm.close();
    }
  }

  it('are encrypted if the URL says so', async () => {
    assert.equal(await isEncrypted(`?sslmode=verify-full&sslrootcert=${folder}/ca.pem`), true);
    assert.equal(await isEncrypted('?sslmode=no-verify'), true);
    assert.equal(await isEncrypted(''), false);
  });

  it('are refused if an authority that the URL does not name vouches for the server', async () => {
    const unknown = { code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' };
    for (const mode of ['require', 'verify-ca', 'verify-full'])
      await assert.rejects(isEncrypted(`?sslmode=${mode}&sslrootcert=${folder}/stranger.pem`), unknown);
    await assert.rejects(isEncrypted('?sslmode=verify-full'), unknown);
    await assert.rejects(isEncrypted('?ssl=true'), unknown);
  });
});
