import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { urlFor } from '../../dev/postgres/logins.ts';
import { column } from '../support/column.ts';
import { assertAudited } from '../support/operator/audited.ts';
import { type Operate, operateIn, operatorEnvironment } from '../support/operator/operate.ts';
import { asOwner, connectTo } from '../support/postgres.ts';

describe('operator login', () => {
  const suffix = randomBytes(4).toString('hex');
  const anna = `anna_${suffix}`;
  const owner = { user: `owner_${suffix}`, password: 'p' };
  let env: NodeJS.ProcessEnv;
  let operate: Operate;
  let asOwnerOf: Operate;

  before(async () => {
    env = await operatorEnvironment();
    const url = String(env.DATABASE_URL);
    // As the owner of an installation: no superuser, but it may create roles, and owns the tables.
    await asOwner(url, [
      `CREATE ROLE ${owner.user} LOGIN CREATEROLE PASSWORD '${owner.password}'`,
      `GRANT card_issuing_app, card_issuing_operator TO ${owner.user} WITH ADMIN OPTION`,
      `GRANT INSERT ON audit_entry TO ${owner.user}`,
    ]);
    operate = operateIn(env);
    asOwnerOf = operateIn({ ...env, DATABASE_URL: urlFor(url, owner), OPERATOR: 'olga' });
  });

  const logins = async () =>
    (await operate('login', 'list')).json.filter(({ id }: { id: string }) => id.endsWith(suffix));

  it('creates a login with the rights of operators, whose URL it shows once, and revokes it', async () => {
    const created = await asOwnerOf('login', 'create', anna);
    assert.equal(created.code, 0, created.err);
    const { database_url, ...login } = created.json;
    assert.deepEqual(login, { id: anna, object: 'login', status: 'active', sessions: 0 });
    await assertAudited(operate, 'login.create', anna, {}, 'olga');
    const hers = operateIn({ ...env, DATABASE_URL: database_url, OPERATOR: 'anna' });
    assert.equal((await hers('partner', 'create', '--name', 'Hers')).code, 0);
    assert.equal((await hers('audit', 'list')).json[0].database_login, anna);
    assert.match((await hers('login', 'create', `eve_${suffix}`)).err, /^Only the owner of the database can/);

    const open = await connectTo(database_url);
    const ended = new Promise((resolve) => open.on('error', resolve));
    assert.deepEqual(await logins(), [{ ...login, sessions: 1 }]);
    for (let i = 0; i < 2; i++) {
      const revoked = await asOwnerOf('login', 'revoke', anna);
      assert.deepEqual([revoked.code, revoked.json?.status], [0, 'revoked'], revoked.err);
    }
    await ended;
    await assert.rejects(new pg.Client(database_url).connect(), { code: '28P01' });
    const actions = (await operate('audit', 'list', '--subject', anna)).json;
    assert.deepEqual(column(actions, 'action'), ['login.revoke', 'login.create']);
  });

  it('takes no name twice, and revokes nothing but the logins of operators', async () => {
    assert.match((await asOwnerOf('login', 'create', anna)).err, /^There already is a role /);
    for (const other of ['test_worker', 'card_issuing_operator', owner.user, 'nobody'])
      assert.match((await asOwnerOf('login', 'revoke', other)).err, /^No operator has a login /, other);
    for (const name of ['pg_x', 'A', 'a-b', `${'a'.repeat(64)}`, 'a"; --'])
      assert.equal((await asOwnerOf('login', 'create', name)).code, 2, name);
    assert.deepEqual((await logins()).length, 1);
  });
});
