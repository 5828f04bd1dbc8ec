import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { pino } from 'pino';
import { createApiKey, revokeApiKey } from '../../accounts/api-keys.ts';
import { announceExpiringKeys } from '../../accounts/jobs.ts';
import { suspendPartner } from '../../accounts/partners.ts';
import { DEFAULT_SCOPES, Scope } from '../../accounts/scope-rules.ts';
import { createAdmission } from '../../api/http/admission.ts';
import { createAuthenticate } from '../../api/http/authenticate.ts';
import { startApi } from '../../api/server.ts';
import { freePort } from '../../dev/free-port.ts';
import type { Mode } from '../../domain/mode.ts';
import { apiKeyHasher } from '../../platform/crypto/api-key.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { expectError } from '../support/api/answers.ts';
import { fundedPartner } from '../support/money.ts';
import { environmentOf, operateIn } from '../support/operator/operate.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import { type Answer, partnerAt, type TestPartner, type TestStack } from '../support/stack.ts';
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

  it('are made with a name, shown once, and used at once', async () => {
    const { key, ...made } = await create({ name: 'Card server' });
    assert.match(key, /^sk_test_[0-9A-Za-z]{42}$/);
    assert.deepEqual(made, {
      id: made.id,
      object: 'api_key',
      name: 'Card server',
      prefix: key.slice(0, 12),
      scopes: DEFAULT_SCOPES,
      ip_allowlist: null,
      expires_at: null,
      last_used_at: null,
      created_by: root.id,
      status: 'active',
      mode: 'test',
      created: made.created,
    });
    assert.match(made.id, /^key_/);
    assert.equal(await pingWith(key), 200);
    const shown = await ask('GET', `/api-keys/${made.id}`);
    assert.deepEqual({ ...shown.json, last_used_at: null }, made);
    const listed = await ask('GET', '/api-keys');
    assert.equal(listed.json.data[0].id, made.id);
    assert.ok(!(shown.text + listed.text).includes(key));
    assert.ok(!stack.logLines.join('').includes(key));
    const stored = await asOwner<{ hits: number }>(
      stack,
      `SELECT (SELECT count(*) FROM api_key k WHERE k::text LIKE $1)::int
        + (SELECT count(*) FROM audit_entry a WHERE a::text LIKE $1)::int AS hits`,
      [`%${key.slice(12)}%`],
    );
    assert.deepEqual(stored, [{ hits: 0 }]);
  });

  it('are listed newest first, in pages, with those of operators, and without those of other modes and accounts', async () => {
    const made = [await create({}), await create({}), await create({})];
    const other = await stack.createPartner();
    const strange = await rootOf(other);
    const first = await ask('GET', '/api-keys?limit=2');
    assert.deepEqual([first.status, first.json.has_more], [200, true], first.text);
    const rest = await ask('GET', `/api-keys?starting_after=${first.json.next_cursor}`);
    const ids = [...first.json.data, ...rest.json.data].map(({ id }) => id);
    assert.deepEqual(ids.slice(0, 4), [made[2].id, made[1].id, made[0].id, root.id]);
    assert.equal(ids.length, 5, "the partner's own test key is the fifth");
    assert.equal(rest.json.data.at(-1).created_by, 'operator');
    expectError(await ask('GET', `/api-keys?starting_after=${strange.id}`), 'validation_failed', [
      'starting_after',
    ]);
    const live = await rootOf(partner, 'live');
    for (const id of [strange.id, live.id, newId('key'), 'x', '%00']) {
      expectError(await ask('GET', `/api-keys/${id}`), 'api_key_not_found');
      expectError(await ask('DELETE', `/api-keys/${id}`), 'api_key_not_found');
      expectError(await ask('POST', `/api-keys/${id}/rotate`), 'api_key_not_found');
    }
    assert.equal(await pingWith(strange.key), 200);
    const since = made[1].created;
    const newer = await ask('GET', `/api-keys?created_gte=${since}`);
    assert.deepEqual(
      newer.json.data.map(({ id }: { id: string }) => id),
      [made[2].id, made[1].id],
    );
  });

  it('ignore an Idempotency-Key, so that no stored answer shows a key again', async () => {
    const headers = { authorization: `Bearer ${root.key}` };
    const options = { headers, body: { name: 'x' }, idempotencyKey: 'same' };
    const first = await partner.call('POST', '/api-keys', options);
    const second = await partner.call('POST', '/api-keys', options);
    assert.deepEqual([first.status, second.status], [201, 201]);
    assert.notEqual(first.json.key, second.json.key);
  });

  const BAD: [body: object, path: string][] = [
    [{ name: undefined }, 'name'],
    [{ name: '' }, 'name'],
    [{ name: 'a\u0000b' }, 'name'],
    [{ name: 'a\u202eb' }, 'name'],
    [{ name: 'x'.repeat(256) }, 'name'],
    [{ name: null }, 'name'],
    [{ scopes: [] }, 'scopes'],
    [{ scopes: ['cards'] }, 'scopes.0'],
    [{ scopes: 'cards:read' }, 'scopes'],
    [{ scopes: Array(10).fill('cards:read') }, 'scopes'],
    [{ ip_allowlist: [] }, 'ip_allowlist'],
    [{ ip_allowlist: ['300.1.1.1'] }, 'ip_allowlist.0'],
    [{ ip_allowlist: ['10.0.0.0/33'] }, 'ip_allowlist.0'],
    [{ ip_allowlist: ['10.0.0.1', 'fe80::1%eth0'] }, 'ip_allowlist.1'],
    [{ ip_allowlist: ['010.0.0.1'] }, 'ip_allowlist.0'],
    [{ ip_allowlist: ['::ffff:10.0.0.0/90'] }, 'ip_allowlist.0'],
    [{ ip_allowlist: Array(51).fill('10.0.0.1') }, 'ip_allowlist'],
    [{ ip_allowlist: '10.0.0.1' }, 'ip_allowlist'],
    [{ expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
    [{ expires_at: '2099-01-01' }, 'expires_at'],
    [{ expires_at: '2099-13-01T00:00:00Z' }, 'expires_at'],
    [{ expires_at: '9999-12-31T23:59:59-12:00' }, 'expires_at'],
    [{ expires_at: '0000-01-01T00:00:00+12:00' }, 'expires_at'],
    [{ expires_at: 4_000_000_000 }, 'expires_at'],
    [{ key: 'sk_test_x' }, 'key'],
    [{ mode: 'live' }, 'mode'],
  ];
  for (const [body, path] of BAD) {
    it(`are refused with 400 that names ${path} for ${JSON.stringify(body).slice(0, 80)}`, async () => {
      expectError(await ask('POST', '/api-keys', { name: 'one', ...body }), 'validation_failed', [path]);
    });
  }

  it('take each scope and address once, in one spelling', async () => {
    const made = await create({
      scopes: ['cards:write', 'cards:read', 'cards:write'],
      ip_allowlist: [
        '127.0.0.1',
        '127.0.0.1/32',
        '::ffff:127.0.0.1',
        '10.9.8.7/8',
        '2001:DB8:0::1/32',
        '0.0.0.0/0',
        '::/0',
      ],
      expires_at: '2099-01-01T01:00:00+01:00',
    });
    assert.deepEqual(made.scopes, ['cards:read', 'cards:write']);
    assert.deepEqual(made.ip_allowlist, ['127.0.0.1', '10.0.0.0/8', '2001:db8::/32', '0.0.0.0/0', '::/0']);
    assert.equal(made.expires_at, '2099-01-01T00:00:00.000Z');
    const last = await create({ expires_at: '9999-12-31T23:59:59.999Z' });
    assert.equal(last.expires_at, '9999-12-31T23:59:59.999Z');
  });

  it('get only scopes of the key that makes them, by default its own without api_keys:write', async () => {
    const maker = await create({ scopes: ['cards:read', 'api_keys:write'], ip_allowlist: ['127.0.0.0/8'] });
    const made = await create({}, maker.key);
    assert.deepEqual([made.scopes, made.ip_allowlist], [['cards:read'], ['127.0.0.0/8']]);
    assert.equal(made.created_by, maker.id);
    const refused = await ask(
      'POST',
      '/api-keys',
      { name: 'x', scopes: ['cards:read', 'cards:write'] },
      maker.key,
    );
    expectError(refused, 'insufficient_scope');
    assert.match(refused.json.error.message, /: cards:write\./);
    expectError(await ask('POST', `/api-keys/${root.id}/rotate`, {}, maker.key), 'insufficient_scope');
    expectError(await ask('GET', '/api-keys', undefined, made.key), 'insufficient_scope');
  });

  it('are refused from other addresses than those of their allowlist', async () => {
    const elsewhere = await create({ ip_allowlist: ['203.0.113.0/24', '2001:db8::/32'] });
    const refused = await ask('GET', '/ping', undefined, elsewhere.key);
    expectError(refused, 'ip_not_allowed');
    assert.match(refused.json.error.message, /127\.0\.0\.1/);
    // Without a trusted proxy, nobody can choose an address.
    const headers = { authorization: `Bearer ${elsewhere.key}`, 'x-forwarded-for': '203.0.113.7' };
    expectError(await partner.call('GET', '/ping', { headers }), 'ip_not_allowed');
    const here = await create({ ip_allowlist: ['::ffff:127.0.0.0/120', '::/0'] });
    assert.equal(await pingWith(here.key), 200);
    const onlyIpv6 = await create({ ip_allowlist: ['::/0'] });
    assert.equal(await pingWith(onlyIpv6.key), 403);
  });

  it('are revoked in every process 2 s after it last looked, stay listed, and may be the one that asks', async () => {
    const { id, key } = await create({});
    let nowMs = 0;
    const limits = { accountConcurrency: 1, maxWaitMs: 60_000, maxTurnMs: 60_000, maxStartMs: 60_000 };
    const hashes = apiKeyHasher(stack.operator.ring);
    const authenticate = createAuthenticate(
      stack.orm,
      async (one) => hashes(one),
      createAdmission(limits),
      () => nowMs,
    );
    const elsewhere = () => authenticate(`Bearer ${key}`);
    assert.equal((await elsewhere()).keyId, id);
    assert.equal((await ask('DELETE', `/api-keys/${id}`)).status, 204);
    nowMs = 1_999;
    assert.equal((await elsewhere()).keyId, id);
    nowMs = 2_000;
    await assert.rejects(elsewhere(), { code: 'invalid_api_key' });
    assert.equal((await ask('GET', `/api-keys/${id}`)).json.status, 'revoked');
    assert.equal((await ask('DELETE', `/api-keys/${id}`)).status, 204);
    expectError(await ask('POST', `/api-keys/${id}/rotate`), 'invalid_state');
    assert.equal((await ask('DELETE', `/api-keys/${root.id}`)).status, 204);
    await until('the asking key is refused', async () => (await pingWith(root.key)) === 401);
  });

  /** Sends a request for a card but for the last byte of its body. @returns what sends that byte and reads the response */
  const beginCard = async (key: string) => {
    const socket = connect(stack.config.port, stack.config.host);
    await once(socket, 'connect');
    socket.write(
      `POST /v1/cards HTTP/1.1\r\nHost: h\r\nConnection: close\r\nAuthorization: Bearer ${key}\r\n` +
        'Idempotency-Key: held\r\nContent-Type: application/json\r\nContent-Length: 35\r\n' +
        'Expect: 100-continue\r\n\r\n{"amount":1000,"external_ref":"x1"',
    );
    await once(socket, 'data');
    return () => {
      socket.write('}');
      return text(socket);
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
    await until(
      'the suspended one is refused',
      async () => (await suspended.call('GET', '/ping')).status === 403,
    );
    const answers = await Promise.all([finishRevoked(), finishSuspended()]);
    assert.match(answers[0], /^HTTP\/1\.1 401 [\s\S]*"invalid_api_key"/);
    assert.match(answers[1], /^HTTP\/1\.1 403 [\s\S]*"account_suspended"/);
    const cards = 'SELECT FROM card WHERE partner_id = ANY ($1)';
    assert.deepEqual(await asOwner(stack, cards, [[revoked.id, suspended.id]]), []);
    assert.match(await finishOther(), /^HTTP\/1\.1 201 /);
  });

  it('that were revoked make no more keys, even while a process still knows them', async () => {
    assert.equal(await pingWith(root.key), 200);
    await revokeApiKey(stack.operator, root.id);
    for (const answer of [
      await ask('POST', '/api-keys', { name: 'x' }),
      await ask('POST', `/api-keys/${root.id}/rotate`),
      await ask('DELETE', `/api-keys/${root.id}`),
    ])
      expectError(answer, 'invalid_api_key');
  });

  it('expire, and are then refused and listed as expired', async () => {
    const { id, key } = await create({ expires_at: new Date(Date.now() + DAY_MS).toISOString() });
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
    const several = await Promise.all(
      Array.from({ length: 6 }, () => ask('POST', '/api-keys', { name: 'x' })),
    );
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
      `INSERT INTO api_key (id, partner_id, mode, hash, hint, revoked_at) SELECT id, $1, 'test', convert_to(id, 'UTF8'), 'h', now() FROM unnest($2::text[]) id`,
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
    for (const overlap of [-1, 604_801, 1.5, '60', null])
      expectError(
        await ask('POST', `/api-keys/${json.id}/rotate`, { overlap_seconds: overlap }),
        'validation_failed',
        ['overlap_seconds'],
      );
  });

  it('are rotated in every process without one refused request, and say when they were last used', async () => {
    const keys = [await create({ scopes: ['balance:read', 'api_keys:write'] })];
    const second = await startApi({ ...stack.config, port: await freePort() }, pino({ level: 'silent' }));
    try {
      const there = partnerAt(partner, second.url);
      for (let rotation = 0; rotation < 3; rotation++) {
        const { id, key } = keys.at(-1);
        const statuses = Promise.all(
          keys.flatMap((one) =>
            [partner, there].map(async (at) => {
              const headers = { authorization: `Bearer ${one.key}` };
              return (await at.call('GET', '/balance', { headers })).status;
            }),
          ),
        );
        const rotated = await ask('POST', `/api-keys/${id}/rotate`, { overlap_seconds: 60 }, key);
        assert.equal(rotated.status, 201, rotated.text);
        assert.deepEqual(new Set(await statuses), new Set([200]));
        keys.push(rotated.json);
      }
    } finally {
      await second.stop();
    }
    // A process records at its end when keys were last used, and leaves a key that the other process is recording to it.
    const usedAt = await until('the key says when it was used', async () => {
      return (await ask('GET', `/api-keys/${keys[0].id}`)).json.last_used_at;
    });
    assert.ok(Date.parse(usedAt) >= Date.parse(keys[0].created), usedAt);
  });

  const announce = () => announceExpiringKeys({ orm: stack.orm, logger: pino({ level: 'silent' }) });

  it('are announced once with api_key.expiring: at once if they expire within seven days, else not yet', async () => {
    const expiresAt = new Date(Date.now() + 6 * DAY_MS).toISOString();
    const soon = await create({ expires_at: expiresAt, ip_allowlist: ['127.0.0.1'] });
    const later = await create({ expires_at: new Date(Date.now() + 8 * DAY_MS).toISOString() });
    const rotated = await create({});
    assert.equal((await ask('POST', `/api-keys/${rotated.id}/rotate`)).status, 201);
    await announce();
    const [event] = await expiringEvents(soon.id);
    const { key: _, ip_allowlist: __, ...shown } = soon;
    assert.deepEqual(event.data, { api_key: shown });
    // A shorter life is no news.
    assert.equal((await ask('POST', `/api-keys/${soon.id}/rotate`, { overlap_seconds: 60 })).status, 201);
    await announce();
    for (const [{ id }, times] of [
      [soon, 1],
      [rotated, 1],
      [later, 0],
    ] as const)
      assert.equal((await expiringEvents(id)).length, times);
  });

  it('are announced once each, though several workers look for them', async () => {
    const expiresAt = new Date(Date.now() + DAY_MS).toISOString();
    const made: { id: string }[] = await Promise.all(
      Array.from({ length: 10 }, () => create({ expires_at: expiresAt })),
    );
    await Promise.all([announce(), announce(), announce()]);
    await announce();
    for (const { id } of made) assert.equal((await expiringEvents(id)).length, 1);
  });

  it("are announced once, too, if their account's clock jumps past their expiry", async () => {
    const { id, key } = await create({ expires_at: new Date(Date.now() + 10 * DAY_MS).toISOString() });
    assert.equal((await ask('POST', '/test/clock/advance', { seconds: 30 * 86_400 })).status, 200);
    await announce();
    await until('it is refused', async () => (await pingWith(key)) === 401);
    const ready = async () => (await ask('GET', '/test/clock')).json.status === 'ready';
    await until('the clock is ready', ready);
    const [event, ...more] = await expiringEvents(id);
    assert.deepEqual([event.data.api_key.status, more], ['expired', []]);
  });

  it("follow their account's sandbox clock", async () => {
    const { id, key } = await create({ expires_at: new Date(Date.now() + 10 * DAY_MS).toISOString() });
    assert.equal((await ask('POST', '/test/clock/advance', { seconds: 4 * 86_400 })).status, 200);
    await announce();
    assert.equal((await expiringEvents(id)).length, 1);
    assert.equal(await pingWith(key), 200);
    assert.equal((await ask('POST', '/test/clock/advance', { seconds: 7 * 86_400 })).status, 200);
    await until('it has expired', async () => (await pingWith(key)) === 401);
    const past = new Date(Date.now() + 10 * DAY_MS).toISOString();
    expectError(await ask('POST', '/api-keys', { name: 'x', expires_at: past }), 'validation_failed', [
      'expires_at',
    ]);
    const made = await create({});
    assert.ok(Date.parse(made.created) > Date.now() + 10 * DAY_MS);
    assert.equal(await pingWith(made.key), 200);
  });

  it('leave what partners did with them in the audit log, by key and address', async () => {
    const operate = operateIn(environmentOf(stack.config));
    const made = await create({ name: 'audited' });
    const rotated = (await ask('POST', `/api-keys/${made.id}/rotate`)).json;
    await ask('DELETE', `/api-keys/${rotated.id}`);
    for (const actor of [partner.id, `${partner.id}/${root.id}`]) {
      const { json } = await operate('audit', 'list', '--actor', actor);
      assert.deepEqual(
        json.map(({ action, subject }: { action: string; subject: string }) => [action, subject]).sort(),
        [
          ['key.create', made.id],
          ['key.create', rotated.id],
          ['key.revoke', rotated.id],
          ['key.rotate', made.id],
        ].sort(),
      );
      assert.equal(json[0].actor, `${partner.id}/${root.id}`);
      assert.equal(json[0].partner_id, partner.id);
      assert.equal(json[0].detail.clientAddress, '127.0.0.1');
    }
    const listed = await operate('key', 'list', partner.id, '--scopes');
    const own = listed.json.find(({ id }: { id: string }) => id === made.id);
    assert.deepEqual([own.created_by, own.scopes], [root.id, DEFAULT_SCOPES]);
  });
});
