import assert from 'node:assert/strict';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadSecrets } from '../../../../dev/stack/data-folder.ts';
import { makeLogins } from '../../../../dev/stack/database.ts';
import { API_ROLE, OPERATOR_ROLE, WORKER_ROLE } from '../../../../platform/db/login.ts';
import { openOrm } from '../../../../platform/db/orm.ts';
import { query } from '../../../../platform/db/sql.ts';
import { scratchFolder } from '../../../support/dev/scratch.ts';
import { asOwner, createTestDatabase, ownerUrlOf } from '../../../support/postgres.ts';

const OWN_SERVER = { DATABASE_URL: undefined, ALLOW_OWNER_LOGIN: undefined };

describe('the logins of the local stack', () => {
  const scratch = scratchFolder();

  it('are added to the secrets of a data folder that has none, and then kept', async () => {
    const file = join(scratch.path, 'secrets.json');
    const older = { postgresPassword: 'owner', encryptionKeys: 'local:key' };
    await writeFile(file, JSON.stringify(older));
    const { logins, codecKeys, codecToken, ...rest } = loadSecrets(file);
    assert.deepEqual(rest, older);
    assert.match(codecKeys, /^local:\S{44}$/);
    assert.equal(new Set(Object.values(logins).map(({ password }) => password)).size, 3);
    const kept = { ...older, logins, codecKeys, codecToken };
    assert.deepEqual(loadSecrets(file), kept);
    assert.deepEqual(JSON.parse(await readFile(file, 'utf8')), kept);
    assert.equal((await stat(file)).mode & 0o777, 0o600);
  });

  it('are made with their roles alone, and updated with other passwords', async () => {
    const ownerUrl = ownerUrlOf(await createTestDatabase());
    for (const round of ['first', 'second']) {
      const { logins } = loadSecrets(join(scratch.path, `${round}.json`));
      const names = {
        api: { ...logins.api, user: 'stack_a' },
        worker: { ...logins.worker, user: 'stack_w' },
        operator: { ...logins.operator, user: 'stack_o' },
      };
      const urls = await makeLogins(ownerUrl, names, OWN_SERVER);
      for (const [databaseUrl, role] of [
        [urls.databaseUrl, API_ROLE],
        [urls.workerDatabaseUrl, WORKER_ROLE],
        [urls.operatorDatabaseUrl, OPERATOR_ROLE],
      ] as const) {
        assert.notEqual(databaseUrl, ownerUrl);
        const orm = await openOrm({ databaseUrl, poolSize: 1, role });
        assert.deepEqual(await query(orm.em.fork(), 'SELECT current_user AS role'), [{ role }]);
        await orm.close();
      }
    }
  });

  it('need an owner who may make roles, or permission for everything to log in as the owner', async () => {
    const url = await createTestDatabase();
    const { logins } = loadSecrets(join(scratch.path, 'third.json'));
    const theirs = { ...OWN_SERVER, DATABASE_URL: url };
    await assert.rejects(makeLogins(url, logins, theirs), /CREATEROLE.*ALLOW_OWNER_LOGIN=true/);
    assert.deepEqual(await makeLogins(url, logins, { ...theirs, ALLOW_OWNER_LOGIN: 'true' }), {
      databaseUrl: url,
      workerDatabaseUrl: url,
      operatorDatabaseUrl: url,
    });
    assert.deepEqual(await asOwner(url, `SELECT FROM pg_roles WHERE rolname = '${logins.api.user}'`), []);
  });
});
