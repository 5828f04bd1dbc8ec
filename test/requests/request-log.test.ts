import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createApiKey } from '../../accounts/api-keys.ts';
import { suspendPartner } from '../../accounts/partners.ts';
import { createRequestLog } from '../../api/http/request-log.ts';
import { createStorageBudget } from '../../api/http/storage-budget.ts';
import { createUsageBuckets } from '../../api/http/usage-buckets.ts';
import { lowestId, newId } from '../../platform/crypto/new-id.ts';
import { dropOldRequests } from '../../platform/db/partitions.ts';
import type { LoggedRequestResource, LoggedRequestRow } from '../../requests/logged-request-resource.ts';
import { expectError } from '../support/api/answers.ts';
import { createCard } from '../support/cards.ts';
import { fundedPartner } from '../support/money.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { Answer, CallOptions, TestPartner, TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

describe('the log of requests', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let cardId: string;
  before(async () => {
    stack = await sharedStack('api');
    partner = await fundedPartner(stack);
    cardId = (await createCard(partner, { amount: 10_000 })).json.id;
  });

  const inLog = (id: string | null) =>
    until('the request is in the log', async () => {
      const [row] = await asOwner(stack, 'SELECT path, error_code FROM logged_request WHERE id = $1', [id]);
      return row;
    });
  const logged = async ({ headers }: Answer): Promise<LoggedRequestResource> => {
    await inLog(headers.get('request-id'));
    const { status, json, text } = await partner.call('GET', `/requests/${headers.get('request-id')}`);
    assert.equal(status, 200, text);
    return json;
  };
  const ask = async (method: string, path: string, options: CallOptions = {}) => {
    const answer = await partner.call(method, path, options);
    return { answer, entry: await logged(answer) };
  };

  it('has what a request was and how it ended', async () => {
    const { answer, entry } = await ask('POST', `/cards/${cardId}/topups`, {
      body: { amount: 1_000 },
      idempotencyKey: 'order-1',
    });
    const { duration_ms: durationMs, created, api_key_id: keyId, ...rest } = entry;
    assert.deepEqual(rest, {
      id: answer.headers.get('request-id'),
      object: 'request',
      method: 'POST',
      path: `/v1/cards/${cardId}/topups`,
      status: 201,
      error: null,
      address: '127.0.0.1',
      idempotency_key: 'order-1',
      operation_id: answer.headers.get('operation-id'),
      mode: 'test',
    });
    assert.match(keyId, /^key_/);
    assert.ok(durationMs >= 0);
    assert.ok(Date.parse(created) <= Date.now());
  });

  it('has no successful GET, and nothing without a valid key', async () => {
    const read = await partner.call('GET', `/cards/${cardId}`);
    const stranger = await partner.call('POST', '/quotes', {
      body: {},
      headers: { authorization: 'Bearer x' },
    });
    await ask('GET', '/cards/card_x');
    for (const { headers } of [read, stranger])
      expectError(await partner.call('GET', `/requests/${headers.get('request-id')}`), 'request_not_found');
    const rows = await asOwner(stack, 'SELECT 1 FROM logged_request WHERE id = ANY ($1)', [
      [read, stranger].map(({ headers }) => headers.get('request-id')),
    ]);
    assert.equal(rows.length, 0);
  });

  const SECRET = 'Ada-Lovelace';
  const card = 'PATCH /cards/CARD';
  const inList = { spending_controls: { spending_limits: [{ amount: SECRET }] } };
  const nowhere = { [`spending_controls.spending_limits.${'4'.repeat(16)}.amount`]: SECRET };
  /** What is asked, the path that is kept, and the parameter of its error. */
  const NOT_KEPT: [what: string, asked: string, body: unknown, kept: string, param: string | null][] = [
    ['a body', 'POST /quotes', { type: SECRET }, '/v1/quotes', 'type'],
    [
      'an undeclared field',
      'POST /quotes',
      { type: 'card_issue', amount: 1, [SECRET]: 1 },
      '/v1/quotes',
      null,
    ],
    ['the place of what is in no list', card, nowhere, '/v1/cards/CARD', null],
    ['a query', `GET /cards?limit=${SECRET}`, undefined, '/v1/cards', 'limit'],
    ['an id that is none', `GET /cards/${SECRET}`, undefined, '/v1/cards/…', null],
    ['a month', `GET /statements/${SECRET}`, undefined, '/v1/statements/…', null],
    ['an unknown path', `POST /${SECRET}`, undefined, '…', null],
    ['a path without such a method', 'PUT /cards', undefined, '…', null],
    ['a key of metadata', card, { metadata: { [SECRET]: 1 } }, '/v1/cards/CARD', null],
    ['what is in a list', card, inList, '/v1/cards/CARD', 'spending_controls.spending_limits.0.amount'],
  ];
  for (const [what, asked, body, kept, param] of NOT_KEPT) {
    it(`keeps nothing that a person typed: ${what}`, async () => {
      const [method = '', path = ''] = asked.replace('CARD', cardId).split(' ');
      const { entry } = await ask(method, path, { body });
      assert.ok(!JSON.stringify(entry).includes(SECRET), JSON.stringify(entry));
      assert.equal(entry.path, kept.replace('CARD', cardId));
      assert.equal(entry.error?.param ?? null, param);
    });
  }

  const KEYS: [sent: string, kept: string | null][] = [
    ['order-4242424242424242', 'order-…'],
    ['123456789012', '…'],
    ['12345678901', '12345678901'],
    ['1234567890123456789', '…'],
    ['12345678901234567890', '12345678901234567890'],
    ['a 4242424242424242 b 5555555555554444', 'a … b …'],
  ];
  for (const [sent, kept] of KEYS) {
    it(`has the Idempotency-Key ${sent} as ${kept}`, async () => {
      const { entry } = await ask('POST', '/test/credit', { body: {}, idempotencyKey: sent });
      assert.equal(entry.idempotency_key, kept);
    });
  }

  it('has no Idempotency-Key where none is taken', async () => {
    const { entry } = await ask('POST', '/quotes', { body: {}, idempotencyKey: 'mine' });
    assert.equal(entry.idempotency_key, null);
  });

  it('has what is refused before its path is looked at', async () => {
    const other = await stack.createPartner();
    await suspendPartner(stack.operator, other.id, 'test');
    await until('it is suspended', async () => (await other.call('GET', '/ping')).status === 403);
    const refused = await other.call('POST', `/cards/${cardId}/freeze`);
    const row = await inLog(refused.headers.get('request-id'));
    assert.deepEqual(row, { path: `/v1/cards/${cardId}/freeze`, error_code: 'account_suspended' });
  });

  it('belongs to its account and mode, and needs requests:read', async () => {
    const { answer } = await ask('POST', '/quotes', { body: {} });
    const path = `/requests/${answer.headers.get('request-id')}`;
    expectError(await partner.call('GET', path, { mode: 'live' }), 'request_not_found');
    expectError(await (await stack.createPartner()).call('GET', path), 'request_not_found');
    const key = await createApiKey(stack.operator, {
      partnerId: partner.id,
      mode: 'test',
      name: null,
      scopes: ['cards:read'],
    });
    const headers = { authorization: `Bearer ${key.key}` };
    expectError(await partner.call('GET', '/requests', { headers }), 'insufficient_scope');
  });

  describe('as a list', () => {
    let other: TestPartner;
    const ids: string[] = [];
    /** Straight into the table, newest first. */
    const seed = async (count: number) => {
      const newestMs = Date.now() - 60_000;
      const rows = Array.from({ length: count }, (_, n) => ({
        id: `${lowestId('req', new Date(newestMs - n)).slice(0, 14)}${newId('req').slice(14)}`,
        method: n % 2 === 0 ? 'POST' : 'DELETE',
        path: n % 3 === 0 ? '/v1/cards' : '/v1/quotes',
        status: [200, 404, 422, 500][n % 4],
        key: n % 5 === 0 ? 'key_01k00000000000000000000000' : 'key_01k00000000000000000000001',
      }));
      await asOwner(
        stack,
        `INSERT INTO logged_request (id, partner_id, mode, method, path, status, api_key_id, duration_ms)
         SELECT id, $2, 'test', method, path, status, key, 1 FROM jsonb_to_recordset($1) AS r (id text, method text, path text, status int, key text)`,
        [JSON.stringify(rows), other.id],
      );
      ids.push(...rows.map(({ id }) => id));
    };
    const list = async (query: Record<string, string>) => {
      const { status, json, text } = await other.call('GET', `/requests?${new URLSearchParams(query)}`);
      assert.equal(status, 200, text);
      return json;
    };
    before(async () => {
      other = await stack.createPartner();
      await seed(60);
    });

    it('is newest first, in pages, with the filters that it promises', async () => {
      const all = await list({ limit: '100' });
      assert.deepEqual(
        all.data.map(({ id }: { id: string }) => id),
        ids,
      );
      const FILTERS: [Record<string, string>, (entry: LoggedRequestResource) => boolean][] = [
        [{ status: '4xx' }, ({ status }) => status >= 400 && status < 500],
        [{ status: '404' }, ({ status }) => status === 404],
        [{ method: 'DELETE' }, ({ method }) => method === 'DELETE'],
        [{ path_prefix: '/v1/c' }, ({ path }) => path.startsWith('/v1/c')],
        [{ api_key_id: 'key_01k00000000000000000000000' }, ({ api_key_id: id }) => id.endsWith('0')],
        [{ status: '5xx', method: 'POST' }, ({ status, method }) => status === 500 && method === 'POST'],
        [
          { created_gte: all.data[9].created, created_lte: all.data[3].created },
          ({ created }) => created >= all.data[9].created && created <= all.data[3].created,
        ],
      ];
      for (const [filter, wants] of FILTERS)
        assert.deepEqual(
          (await list({ limit: '100', ...filter })).data,
          all.data.filter(wants),
          JSON.stringify(filter),
        );
      const first = await list({ limit: '25' });
      const rest = await list({ limit: '100', starting_after: first.next_cursor });
      assert.deepEqual([...first.data, ...rest.data], all.data);
      assert.deepEqual([rest.has_more, rest.next_cursor], [false, null]);
    });

    for (const [name, value] of [
      ['status', '6xx'],
      ['method', 'post'],
      ['path_prefix', 'cards'],
      ['api_key_id', 'x'],
    ] as const)
      it(`refuses ${name}=${value}`, async () =>
        expectError(await other.call('GET', `/requests?${name}=${value}`), 'validation_failed', [name]));

    it('looks through a bounded number of requests, and goes on from there', async () => {
      const startedAt = new Date();
      // What was refused above is logged a little later, and would take a place.
      await other.call('GET', '/requests?status=6xx');
      await until('it is logged', async () => {
        const refused = 'SELECT FROM logged_request WHERE partner_id = $1 AND status = 400 AND id >= $2';
        return (await asOwner(stack, refused, [other.id, lowestId('req', startedAt)])).length > 0;
      });
      await asOwner(stack, 'DELETE FROM logged_request WHERE partner_id = $1', [other.id]);
      ids.length = 0;
      await seed(10_040);
      const page = await list({ status: '404', path_prefix: '/v1/none' });
      assert.deepEqual([page.data, page.has_more, page.next_cursor], [[], true, ids[9_999]]);
      const rest = await list({ limit: '100', starting_after: page.next_cursor });
      assert.equal(rest.data.length, 40);
    });

    it('has nothing older than 7 days, and its days are dropped', async () => {
      const old = `${lowestId('req', new Date(Date.now() - 7 * 86_400_000 - 1_000)).slice(0, 14)}${newId('req').slice(14)}`;
      await asOwner(
        stack,
        `INSERT INTO logged_request (id, partner_id, mode, method, path, status, api_key_id, duration_ms) VALUES ($1, $2, 'test', 'POST', '…', 404, 'key', 1)`,
        [old, other.id],
      );
      expectError(await other.call('GET', `/requests/${old}`), 'request_not_found');
      await dropOldRequests(stack.orm);
    });
  });
});

describe('the log of requests in a process', () => {
  const row = (partnerId = 'prt_1'): LoggedRequestRow => ({
    id: newId('req'),
    partner_id: partnerId,
    mode: 'test',
    method: 'POST',
    path: '/v1/cards',
    status: 201,
    error_code: null,
    error_param: null,
    api_key_id: randomUUID(),
    address: null,
    idempotency_key: null,
    operation_id: null,
    duration_ms: 1,
  });
  const written = async (log: ReturnType<typeof createRequestLog>) => {
    const rows: LoggedRequestRow[] = [];
    await log.write(async (some) => void rows.push(...some));
    return rows.length;
  };
  const droppedBy = async (log: ReturnType<typeof createRequestLog>) => {
    const values = (await log.metrics[0]?.get())?.values ?? [];
    return Object.fromEntries(
      values.filter(({ value }) => value > 0).map(({ labels, value }) => [labels.reason, value]),
    );
  };
  const budget = (bytesPerDay: number) =>
    createStorageBudget(
      { bytesPerDay },
      createUsageBuckets(() => 0),
    );

  it('keeps 20 of an account and mode a second, and counts what it drops', async () => {
    let nowMs = 0;
    const log = createRequestLog(budget(0), () => nowMs);
    for (let i = 0; i < 25; i++) log.add(row());
    log.add(row('prt_2'));
    assert.equal(await written(log), 21);
    nowMs = 1_000;
    log.add(row());
    assert.equal(await written(log), 1);
    assert.deepEqual(await droppedBy(log), { account_rate: 5 });
  });

  it("counts in its account's budget of stored bytes, and stops when that is used up", async () => {
    const log = createRequestLog(budget(1_000), () => 0);
    for (let i = 0; i < 4; i++) log.add(row());
    assert.equal(await written(log), 2);
    assert.deepEqual(await droppedBy(log), { budget: 2 });
  });

  it('is bounded while it can not be written, and loses only what failed', async () => {
    const log = createRequestLog(budget(0), () => 0);
    for (let i = 0; i < 10_020; i++) log.add(row(`prt_${i}`));
    await assert.rejects(log.write(() => Promise.reject(new Error('away'))));
    log.add(row('prt_more'));
    assert.equal(await written(log), 1);
    assert.deepEqual(await droppedBy(log), { backlog: 20, not_written: 10_000 });
  });
});
