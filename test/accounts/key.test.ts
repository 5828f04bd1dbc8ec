import assert from 'node:assert/strict';
import { DEFAULT_SCOPES } from '../../accounts/scope-rules.ts';
import { readApiKeyMode } from '../../platform/crypto/api-key.ts';
import { assertAudited } from '../support/operator/audited.ts';
import { type Operate, operateIn, operatorEnvironment } from '../support/operator/operate.ts';

describe('operator key', () => {
  let env: NodeJS.ProcessEnv;
  let operate: Operate;
  let partner: string;

  before(async () => {
    env = await operatorEnvironment();
    operate = operateIn(env);
    partner = (await operate('partner', 'create', '--name', 'Keyed')).json.id;
  });

  for (const mode of ['test', 'live']) {
    it(`shows a new key once with create --mode ${mode}, and records only its hint`, async () => {
      const { code, json } = await operate('key', 'create', partner, '--mode', mode, '--name', 'server');
      assert.equal(code, 0);
      assert.deepEqual(Object.keys(json), ['id', 'key']);
      assert.equal(readApiKeyMode(json.key), mode);
      const rights = { scopes: DEFAULT_SCOPES, ipAllowlist: null, expiresAt: null };
      const made = { partnerId: partner, mode, name: 'server', hint: hintOf(json.key), ...rights };
      await assertAudited(operate, 'key.create', json.id, made);
      const secret = json.key.slice(8, -4);
      for (const args of [
        ['key', 'list', partner],
        ['audit', 'list'],
        ['key', 'revoke', json.id],
      ]) {
        const { out, err } = await operate(...args);
        assert.ok(out.includes(json.id));
        assert.ok(!(out + err).includes(secret));
      }
    });
  }

  it('lists the newest first', async () => {
    const { id } = (await operate('partner', 'create', '--name', 'Lister')).json;
    const first = (await operate('key', 'create', id, '--mode', 'test')).json;
    const second = (await operate('key', 'create', id, '--mode', 'live', '--name', 'two')).json;
    const { code, json } = await operate('key', 'list', id);
    assert.equal(code, 0);
    assert.deepEqual(
      json.map(({ created, ...key }: { created: string }) => key),
      [
        { ...resource(second), mode: 'live', name: 'two', partner_id: id },
        { ...resource(first), mode: 'test', name: null, partner_id: id },
      ],
    );
  });

  it('revokes a key for good, and a second time changes nothing', async () => {
    const { id } = (await operate('key', 'create', partner, '--mode', 'test')).json;
    const first = await operate('key', 'revoke', id);
    assert.equal(first.code, 0);
    assert.equal(new Date(first.json.revoked_at).toISOString(), first.json.revoked_at);
    const audited = (await operate('audit', 'list')).json;
    assert.deepEqual([audited[0].action, audited[0].subject], ['key.revoke', id]);
    const second = await operate('key', 'revoke', id);
    assert.deepEqual([second.code, second.json], [0, first.json]);
    assert.deepEqual((await operate('audit', 'list')).json, audited);
  });

  it('makes a key with scopes, an allowlist and an expiry, which key list --scopes shows', async () => {
    const flags = ['--scopes', 'cards:write,cards:read', '--ip-allowlist', '203.0.113.7, 2001:DB8::1/32'];
    const { code, json, err } = await operate(
      ...['key', 'create', partner, '--mode', 'test', ...flags, '--expires-at', '2099-01-01'],
    );
    assert.equal(code, 0, err);
    const listed = await operate('key', 'list', partner, '--scopes');
    const key = listed.json.find(({ id }: { id: string }) => id === json.id);
    assert.deepEqual(key.scopes, ['cards:read', 'cards:write']);
    assert.deepEqual(key.ip_allowlist, ['203.0.113.7', '2001:db8::/32']);
    assert.equal(key.expires_at, '2099-01-01T00:00:00.000Z');
    const past = await operate('key', 'create', partner, '--mode', 'test', '--expires-at', '2020-01-01');
    assert.deepEqual([past.code, past.err.startsWith('--expires-at must be in the future')], [1, true]);
  });

  it('needs the key ring to create a key, and for nothing else', async () => {
    const without = operateIn({ ...env, ENCRYPTION_KEYS: '' });
    assert.equal((await without('key', 'list', partner)).code, 0);
    const { code, err } = await without('key', 'create', partner, '--mode', 'test');
    assert.equal(code, 1);
    assert.match(err, /ENCRYPTION_KEYS: is required/);
  });

  const hintOf = (key: string) => `${key.slice(0, 8)}…${key.slice(-4)}`;
  function resource({ id, key }: { id: string; key: string }) {
    const created = { id, object: 'api_key', partner_name: 'Lister', created_by: 'operator' };
    const unlimited = { scopes: DEFAULT_SCOPES, ip_allowlist: null, expires_at: null };
    return { ...created, hint: hintOf(key), ...unlimited, last_used_at: null, revoked_at: null };
  }
});
