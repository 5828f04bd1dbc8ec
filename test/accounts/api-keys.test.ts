import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { pino } from 'pino';
import { createApiKey, revokeApiKey } from '../../accounts/api-keys.ts';
import { announceExpiringKeys } from '../../accounts/jobs.ts';
import { suspendPartner } from '../../accounts/partners.ts';
import { Scope } from '../../accounts/scope-rules.ts';
import type { Mode } from '../../domain/mode.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { expectError } from '../support/api/answers.ts';
import { fundedPartner } from '../support/money.ts';
import { environmentOf, operateIn } from '../support/operator/operate.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { Answer, TestPartner, TestStack } from '../support/stack.ts';
import { rowsNaming } from '../support/stored-data.ts';
import { until } from '../support/until.ts';

const DAY_MS = 86_400_000;

describe('API keys', () => {
  let stack: TestStack;
  let partner: TestPartner;
  /** A key of the partner that may do everything. */
  let root: { id: string; key: string };
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    partner = await stack.createPartner();
    root = await rootOf(partner);
  });

  const rootOf = (one: TestPartner, mode: Mode = 'test') =>
    createApiKey(stack.operator, { partnerId: one.id, mode, name: 'root', scopes: Scope.options });
  const ask = (method: string, path: string, body?: unknown, key = root.key): Promise<Answer> =>
    partner.call(method, path, { body, headers: { authorization: `Bearer ${key}` } });
  const create = async (body: object, key = root.key) => {
    const answer = await ask('POST', '/api-keys', { name: 'one', ...body }, key);
    assert.equal(answer.status, 201, answer.text);
    return answer.json;
  };
  const pingWith = async (key: string) => (await ask('GET', '/ping', undefined, key)).status;
  const expiringEvents = async (keyId: string) => {
    const { json } = await ask('GET', '/events?type=api_key.expiring&limit=100');
    return json.data.filter(({ data }: { data: { api_key: { id: string } } }) => data.api_key.id === keyId);
  };

  it('are made with a name, shown once, and used at once, with each scope and address once in one spelling', async () => {
    const { key, ...made } = await create({
      name: 'Card server',
      scopes: ['cards:write', 'cards:read', 'cards:write'],
      ip_allowlist: ['127.0.0.1', '::ffff:127.0.0.1', '10.9.8.7/8'],
      expires_at: '9999-12-31T23:59:59.999Z',
    });
    assert.match(key, /^sk_test_[0-9A-Za-z]{42}$/);
    assert.match(made.id, /^key_/);
    assert.deepEqual(made, {
      ...{ id: made.id, object: 'api_key', name: 'Card server', prefix: key.slice(0, 12) },
      ...{ scopes: ['cards:read', 'cards:write'], ip_allowlist: ['127.0.0.1', '10.0.0.0/8'] },
      ...{ expires_at: '9999-12-31T23:59:59.999Z', last_used_at: null },
      ...{ created_by: root.id, status: 'active', mode: 'test', created: made.created },
    });
    expectError(await ask('GET', '/balance', undefined, key), 'insufficient_scope');
    const usedAt = '2026-11-20T08:00:00.000Z';
    await asOwner(stack, 'UPDATE api_key SET last_used_at = $2 WHERE id = $1', [made.id, usedAt]);
    const shown = await ask('GET', `/api-keys/${made.id}`);
    assert.deepEqual(shown.json, { ...made, last_used_at: usedAt });
    const listed = await ask('GET', '/api-keys');
    assert.equal(listed.json.data.at(-1).created_by, 'operator');
    const stored = await rowsNaming(stack, partner.id);
    for (const text of [shown.text, listed.text, stack.logLines.join(''), JSON.stringify(stored)])
      assert.ok(!text.includes(key.slice(12)));
  });

  it('ignore an Idempotency-Key, so that no stored answer shows a key again', async () => {
    const headers = { authorization: `Bearer ${root.key}` };
    const options = { headers, body: { name: 'x' }, idempotencyKey: 'same' };
    const first = await partner.call('POST', '/api-keys', options);
    const second = await partner.call('POST', '/api-keys', options);
    assert.deepEqual([first.status, second.status], [201, 201]);
    assert.notEqual(first.json.key, second.json.key);
  });

  it('are refused with 400 for an address or an expiry that can not be', async () => {
    for (const [path, value] of [
      ['ip_allowlist.0', ['300.1.1.1']],
      ['ip_allowlist.1', ['10.0.0.1', 'fe80::1%eth0']],
      ['expires_at', '2020-01-01T00:00:00Z'],
      ['expires_at', '9999-12-31T23:59:59-12:00'],
      ['expires_at', '0000-01-01T00:00:00+12:00'],
    ] as const) {
      const body = { name: 'one', [path.split('.')[0] ?? '']: value };
      expectError(await ask('POST', '/api-keys', body), 'validation_failed', [path]);
    }
  });

  it('get only scopes of the key that makes them, by default its own without api_keys:write', async () => {
    const maker = await create({ scopes: ['cards:read', 'api_keys:write'], ip_allowlist: ['127.0.0.0/8'] });
    const made = await create({}, maker.key);
    assert.deepEqual([made.scopes, made.ip_allowlist], [['cards:read'], ['127.0.0.0/8']]);
    assert.equal(made.created_by, maker.id);
    const wider = { name: 'x', scopes: ['cards:read', 'cards:write'] };
    const refused = await ask('POST', '/api-keys', wider, maker.key);
    expectError(refused, 'insufficient_scope');
    assert.match(refused.json.error.message, /: cards:write\./);
    expectError(await ask('POST', `/api-keys/${root.id}/rotate`, {}, maker.key), 'insufficient_scope');
    expectError(await ask('GET', '/api-keys', undefined, made.key), 'insufficient_scope');
  });

  it('are revoked for good, stay listed, and may be the one that asks, which makes no more keys', async () => {
    const { id } = await create({});
    for (let time = 0; time < 2; time++) {
      assert.equal((await ask('DELETE', `/api-keys/${id}`)).status, 204);
      assert.equal((await ask('GET', `/api-keys/${id}`)).json.status, 'revoked');
    }
    expectError(await ask('POST', `/api-keys/${id}/rotate`), 'invalid_state');
    assert.equal((await ask('DELETE', `/api-keys/${root.id}`)).status, 204);
    // Even while this process still knows it.
    for (const [method, path, body] of [
      ['POST', '/api-keys', { name: 'x' }],
      ['POST', `/api-keys/${root.id}/rotate`, {}],
      ['DELETE', `/api-keys/${root.id}`],
    ] as const)
      expectError(await ask(method, path, body), 'invalid_api_key');
    await until('the asking key is refused', async () => (await pingWith(root.key)) === 401);
  });

  /** Sends a request for a card but for the last byte of its body. @returns what sends that byte and reads the response */
  const beginCard = async (key: string) => {
    const socket = connect(stack.config.port, stack.config.host);
    let received = '';
    socket.setEncoding('utf8').on('data', (part: string) => {
      received += part;
    });
    // It may be refused, and closed, before its last byte is sent.
    socket.on('error', () => {});
    const closed = new Promise((resolve) => socket.once('close', resolve));
    await once(socket, 'connect');
    socket.write(
      `POST /v1/cards HTTP/1.1\r\nHost: h\r\nConnection: close\r\nAuthorization: Bearer ${key}\r\n` +
        'Idempotency-Key: held\r\nContent-Type: application/json\r\nContent-Length: 35\r\n' +
        'Expect: 100-continue\r\n\r\n{"amount":1000,"external_ref":"x1"',
    );
    await until('the API asks for the body', () => received !== '');
    return async () => {
      socket.write('}');
      await closed;
      return received.replace('HTTP/1.1 100 Continue\r\n\r\n', '');
    };
  };

  it('start nothing once they are refused as revoked or suspended, not even a request that began before', async () => {
    const revoked = await fundedPartner(stack, 10_000);
    const suspended = await fundedPartner(stack, 10_000);
    const { id, key } = await rootOf(revoked);
    const finishRevoked = await beginCard(key);
    const finishSuspended = await beginCard(suspended.keys.test);
    const finishOther = await beginCard(revoked.keys.test);
    await revokeApiKey(stack.operator, id);
    await suspendPartner(stack.operator, suspended.id, 'test');
    await until('the revoked one is refused', async () => (await pingWith(key)) === 401);
    const isSuspended = async () => (await suspended.call('GET', '/ping')).status === 403;
    await until('the suspended one is refused', isSuspended);
    assert.match(await finishRevoked(), /^HTTP\/1\.1 401 [\s\S]*"invalid_api_key"/);
    assert.match(await finishSuspended(), /^HTTP\/1\.1 403 [\s\S]*"account_suspended"/);
    const cards = 'SELECT FROM card WHERE partner_id = ANY ($1)';
    assert.deepEqual(await asOwner(stack, cards, [[revoked.id, suspended.id]]), []);
    assert.match(await finishOther(), /^HTTP\/1\.1 201 /);
  });

  it('expire, and are then refused and listed as expired', async () => {
    const { id, key } = await expiresIn(1);
    await asOwner(stack, 'UPDATE api_key SET expires_at = now() WHERE id = $1', [id]);
    assert.equal(await pingWith(key), 401);
    assert.equal((await ask('GET', `/api-keys/${id}`)).json.status, 'expired');
    expectError(await ask('POST', `/api-keys/${id}/rotate`), 'invalid_state');
    assert.equal((await ask('DELETE', `/api-keys/${id}`)).status, 204);
    assert.equal((await ask('GET', `/api-keys/${id}`)).json.status, 'revoked');
  });

  it('are at most 50 active ones, however many ask at once, and one more when one has gone', async () => {
    const { json } = await ask('GET', '/api-keys?limit=100');
    const made = [];
    for (let active = json.data.length; active < 49; active++) made.push(await create({}));
    const several = await Promise.all([1, 2, 3, 4, 5, 6].map(() => ask('POST', '/api-keys', { name: 'x' })));
    assert.deepEqual(several.map(({ status }) => status).sort(), [201, 422, 422, 422, 422, 422]);
    for (const one of several) if (one.status === 422) expectError(one, 'limit_exceeded');
    expectError(await ask('POST', `/api-keys/${made[0].id}/rotate`), 'limit_exceeded');
    assert.equal((await ask('GET', `/api-keys/${made[0].id}`)).json.expires_at, null);
    assert.equal((await ask('POST', `/api-keys/${made[0].id}/rotate`, { overlap_seconds: 0 })).status, 201);
    assert.equal((await ask('DELETE', `/api-keys/${made[1].id}`)).status, 204);
    await create({});
    expectError(await ask('POST', '/api-keys', { name: 'x' }), 'limit_exceeded');
  });

  it('are at most 1,000 made in 24 hours, rotations included', async () => {
    const { id } = await create({});
    const keyIds = Array.from({ length: 996 }, () => newId('key'));
    await asOwner(
      stack,
      `INSERT INTO api_key (id, partner_id, mode, hash, prefix, hint, revoked_at) SELECT id, $1, 'test', convert_to(id, 'UTF8'), 'p', 'h', now() FROM unnest($2::text[]) id`,
      [partner.id, keyIds],
    );
    await create({});
    for (const refused of [
      await ask('POST', '/api-keys', { name: 'x' }),
      await ask('POST', `/api-keys/${id}/rotate`),
    ]) {
      expectError(refused, 'rate_limited');
      assert.equal(refused.headers.get('retry-after'), '3600');
    }
    assert.equal((await ask('GET', `/api-keys/${id}`)).json.expires_at, null);
    const live = await rootOf(partner, 'live');
    assert.equal((await ask('POST', '/api-keys', { name: 'x' }, live.key)).status, 201);
  });

  it('are replaced by rotation: one like it, and the old one expires after the overlap', async () => {
    const old = await create({ name: 'server', scopes: ['cards:read'], ip_allowlist: ['127.0.0.1'] });
    const before = Date.now();
    const { status, json, text } = await ask('POST', `/api-keys/${old.id}/rotate`);
    assert.equal(status, 201, text);
    assert.notEqual(json.key, old.key);
    assert.deepEqual(
      [json.name, json.scopes, json.ip_allowlist, json.expires_at, json.created_by, json.status],
      ['server', ['cards:read'], ['127.0.0.1'], null, root.id, 'active'],
    );
    const expiresAt = Date.parse((await ask('GET', `/api-keys/${old.id}`)).json.expires_at);
    assert.ok(expiresAt >= before + DAY_MS - 1_000 && expiresAt <= Date.now() + DAY_MS + 1_000);
    assert.deepEqual([await pingWith(old.key), await pingWith(json.key)], [200, 200]);
    // Again, with a longer overlap: never later than it would have.
    const again = await ask('POST', `/api-keys/${old.id}/rotate`, { overlap_seconds: 604_800 });
    assert.equal(again.status, 201);
    assert.equal(Date.parse((await ask('GET', `/api-keys/${old.id}`)).json.expires_at), expiresAt);
    assert.equal((await ask('POST', `/api-keys/${old.id}/rotate`, { overlap_seconds: 0 })).status, 201);
    await until('the old key is refused', async () => (await pingWith(old.key)) === 401);
    assert.equal((await ask('GET', `/api-keys/${old.id}`)).json.status, 'expired');
  });

  const announce = () => announceExpiringKeys({ orm: stack.orm, logger: pino({ level: 'silent' }) });
  const inDays = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString();
  const expiresIn = (days: number) => create({ expires_at: inDays(days) });

  it('are announced once with api_key.expiring if they expire within seven days, though several workers look', async () => {
    const [soon, later, rotated] = [await expiresIn(6), await expiresIn(8), await create({})];
    assert.equal((await ask('POST', `/api-keys/${rotated.id}/rotate`)).status, 201);
    await Promise.all([announce(), announce(), announce()]);
    const [event] = await expiringEvents(soon.id);
    const { key: _, ip_allowlist: __, ...shown } = soon;
    assert.deepEqual(event.data, { api_key: shown });
    // A shorter life is no news.
    assert.equal((await ask('POST', `/api-keys/${soon.id}/rotate`, { overlap_seconds: 60 })).status, 201);
    await announce();
    const told = async ({ id }: { id: string }) => (await expiringEvents(id)).length;
    assert.deepEqual([await told(soon), await told(rotated), await told(later)], [1, 1, 0]);
  });

  it("follow their account's sandbox clock, and are announced once if it jumps past their expiry", async () => {
    const advance = async (days: number) => {
      const answer = await ask('POST', '/test/clock/advance', { seconds: days * 86_400 });
      assert.equal(answer.status, 200, answer.text);
    };
    const [first, second] = [await expiresIn(10), await expiresIn(30)];
    await advance(4);
    await announce();
    assert.equal((await expiringEvents(first.id)).length, 1);
    assert.equal(await pingWith(first.key), 200);
    await advance(30);
    await announce();
    for (const { id, key } of [first, second]) {
      await until('it has expired', async () => (await pingWith(key)) === 401);
      assert.equal((await expiringEvents(id)).length, 1);
    }
    assert.equal((await expiringEvents(second.id))[0].data.api_key.status, 'expired');
    const past = { name: 'x', expires_at: inDays(10) };
    expectError(await ask('POST', '/api-keys', past), 'validation_failed', ['expires_at']);
    const made = await create({});
    assert.ok(Date.parse(made.created) > Date.now() + 30 * DAY_MS);
    assert.equal(await pingWith(made.key), 200);
  });

  it('leave what partners did with them in the audit log, by key and address', async () => {
    const operate = operateIn(environmentOf(stack.config));
    const made = await create({ name: 'audited' });
    const rotated = (await ask('POST', `/api-keys/${made.id}/rotate`)).json;
    await ask('DELETE', `/api-keys/${rotated.id}`);
    const did = [`create ${made.id}`, `rotate ${made.id}`, `create ${rotated.id}`, `revoke ${rotated.id}`];
    const by = `${partner.id}/${root.id}`;
    for (const listed of [partner.id, by]) {
      const { json } = await operate('audit', 'list', '--actor', listed);
      assert.deepEqual(
        json.map(({ action, subject }: { action: string; subject: string }) => `${action} ${subject}`).sort(),
        did.map((line) => `key.${line}`).sort(),
      );
      const [{ actor, partner_id, detail }] = json;
      assert.deepEqual([actor, partner_id, detail.clientAddress], [by, partner.id, '127.0.0.1']);
    }
  });
});
