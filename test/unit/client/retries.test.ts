import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { inspect } from 'node:util';
import { CardIssuing, CardIssuingConnectionError, CardIssuingError } from '../../../client/index.ts';
import { type LoopbackServer, listenOnLoopback } from '../../support/sockets.ts';

type Reply = (response: ServerResponse, request: IncomingMessage) => void;

const API_KEY = 'sk_test_nobody';
const CARD = { id: 'card_1', object: 'card' };

const send =
  (status: number, body: object | string, headers: Record<string, string> = {}): Reply =>
  (response) =>
    response
      .writeHead(status, { 'request-id': 'req_1', ...headers })
      .end(typeof body === 'string' ? body : JSON.stringify(body));
const refuse = (status: number, code: string, headers?: Record<string, string>): Reply =>
  send(status, { error: { type: 'api', code, message: `It is ${code}.`, request_id: 'req_1' } }, headers);
const hangUp: Reply = (_response, request) => request.socket.destroy();
const stayMute: Reply = () => {};

describe('the client', () => {
  let server: LoopbackServer;
  let replies: Reply[];
  let requests: { method?: string; url?: string; key?: string; at: number }[];
  let client: CardIssuing;

  beforeEach(async () => {
    replies = [];
    requests = [];
    server = await listenOnLoopback((request, response) => {
      const key = request.headers['idempotency-key'];
      requests.push({
        ...(request.method !== undefined && { method: request.method }),
        ...(request.url !== undefined && { url: request.url }),
        ...(typeof key === 'string' && { key }),
        at: performance.now(),
      });
      request.resume().on('end', () => (replies.shift() ?? stayMute)(response, request));
    });
    client = new CardIssuing({ apiKey: API_KEY, baseUrl: `${server.url}/v1` });
  });
  afterEach(() => server.close());

  const create = (options?: object) => client.cards.create({ amount: 1, external_ref: 'a' }, options);
  const caught = async (call: Promise<unknown>): Promise<CardIssuingError> => {
    const error = await call.then(
      () => assert.fail('the call succeeded'),
      (thrown) => thrown,
    );
    assert.ok(error instanceof CardIssuingError, inspect(error));
    return error;
  };

  for (const [what, failure] of [
    ['a lost connection', hangUp],
    ['500', refuse(500, 'internal_error')],
    ['503', refuse(503, 'unavailable')],
    ['a proxy that answers in our place', send(502, '<h1>Bad Gateway</h1>')],
    ['429', refuse(429, 'rate_limited')],
    ['409 idempotency_in_flight', refuse(409, 'idempotency_in_flight')],
    ['a response that was cut off', send(201, '{"id":"card_')],
    ['a response without a body', send(201, '')],
  ] as const) {
    it(`retries after ${what} with the same Idempotency-Key`, async () => {
      replies = [failure, send(201, CARD)];
      const card = await create();
      assert.deepEqual(card, CARD);
      assert.equal(requests.length, 2);
      assert.match(requests[0]?.key ?? '', /^[0-9a-f-]{36}$/);
      assert.equal(requests[1]?.key, requests[0]?.key);
      assert.equal(card.lastResponse.idempotencyKey, requests[0]?.key);
    });
  }

  it("retries after a timeout with the caller's Idempotency-Key", async () => {
    replies = [stayMute, send(201, CARD)];
    await create({ timeoutMs: 200, idempotencyKey: 'order-1' });
    assert.deepEqual(
      requests.map(({ key }) => key),
      ['order-1', 'order-1'],
    );
  });

  it('waits before a retry for as long as Retry-After says', async () => {
    replies = [refuse(429, 'rate_limited', { 'retry-after': '2' }), send(201, CARD)];
    await create();
    assert.ok((requests[1]?.at ?? 0) - (requests[0]?.at ?? 0) >= 1_990);
  });

  it('leaves a wait of more than a minute to the caller', async () => {
    replies = [refuse(429, 'reveal_limit_reached', { 'retry-after': '61' })];
    const error = await caught(client.cards.getSecureDetails('card_1'));
    assert.deepEqual([error.code, error.retryAfterSeconds, requests.length], ['reveal_limit_reached', 61, 1]);
  });

  it('waits longer before each retry, and gives up after the configured number', async () => {
    replies = Array.from({ length: 4 }, () => refuse(503, 'unavailable'));
    const error = await caught(create({ maxRetries: 2 }));
    assert.deepEqual([error.status, error.code, requests.length], [503, 'unavailable', 3]);
    const [first = 0, second = 0, third = 0] = requests.map(({ at }) => at);
    assert.ok(second - first >= 250, `${second - first} ms`);
    assert.ok(third - second >= 500, `${third - second} ms`);
  });

  it('reports a connection that stays lost, with the key to try again with', async () => {
    replies = [hangUp, hangUp];
    const error = await caught(create({ maxRetries: 1 }));
    assert.ok(error instanceof CardIssuingConnectionError);
    assert.deepEqual([error.status, error.type, error.code], [null, 'connection', 'connection_failed']);
    assert.equal(error.idempotencyKey, requests[0]?.key);
    assert.ok(error.cause instanceof Error);
    const { host } = new URL(server.url);
    assert.match(
      error.message,
      new RegExp(`^The connection to ${host} failed: UND_ERR_SOCKET, other side closed\\. `),
    );
    assert.match(error.message, /may have been carried out: call again with this error's idempotencyKey/);
  });

  it('says which host refused the connection or does not exist, and that a read can simply be repeated', async () => {
    const closed = new URL(server.url).host;
    await server.close();
    for (const [host, reason] of [
      [closed, /ECONNREFUSED/],
      ['no-such-host.invalid', /ENOTFOUND|EAI_AGAIN/],
    ] as const) {
      const nowhere = new CardIssuing({ apiKey: API_KEY, baseUrl: `http://${host}/v1`, maxRetries: 0 });
      const { message } = await caught(nowhere.balance.get());
      assert.ok(message.startsWith(`The connection to ${host} failed: `), message);
      assert.match(message, reason);
      assert.doesNotMatch(message, /carried out/);
    }
  });

  it('says that a proxy responded, and what to do about a request that moves money', async () => {
    replies = [send(502, '<h1>Bad Gateway</h1>')];
    const error = await caught(create({ maxRetries: 0 }));
    assert.equal(error.code, 'unexpected_response');
    assert.match(
      error.message,
      /with status 502, is not the API.*call again with this error's idempotencyKey/,
    );
  });

  it('refuses an Idempotency-Key that the API would refuse, without a request', async () => {
    for (const idempotencyKey of ['', 'a\nb', '\u00fc', 'x'.repeat(256)]) {
      await assert.rejects(create({ idempotencyKey }), /^TypeError: idempotencyKey must have 1 to 255/);
    }
    assert.equal(requests.length, 0);
  });

  it('reports a timeout', async () => {
    const error = await caught(create({ maxRetries: 0, timeoutMs: 100 }));
    assert.equal(error.code, 'timed_out');
    assert.match(error.message, /100 ms/);
  });

  for (const [status, code] of [
    [400, 'validation_failed'],
    [401, 'invalid_api_key'],
    [402, 'insufficient_funds'],
    [409, 'external_ref_taken'],
    [422, 'limit_exceeded'],
  ] as const) {
    it(`does not retry after ${status} ${code}`, async () => {
      replies = [refuse(status, code)];
      const error = await caught(create());
      assert.deepEqual(
        [error.status, error.code, error.requestId, requests.length],
        [status, code, 'req_1', 1],
      );
    });
  }

  it('retries a request that must not happen twice only if it was refused with 429', async () => {
    const calls = [
      () => client.webhookEndpoint.rotateSecret(),
      () => client.webhookEndpoint.test(),
      () => client.webhookEndpoint.delete(),
      () => client.events.resend('evt_1'),
      () => client.cards.getSecureDetails('card_1'),
      () => client.apiKeys.create({ name: 'a' }),
      () => client.apiKeys.rotate('key_1'),
      () => client.webhookEndpoints.create({ url: 'https://hooks.example.com/' }),
      () => client.webhookEndpoints.replay('we_1', { created_gte: '2026-11-20T08:00:00Z' }),
    ];
    for (const call of calls) {
      for (const failure of [hangUp, refuse(503, 'unavailable'), send(200, '')]) {
        requests = [];
        replies = [failure];
        await caught(call());
        assert.equal(requests.length, 1);
      }
      requests = [];
      replies = [refuse(429, 'rate_limited'), send(200, {})];
      await call();
      assert.equal(requests.length, 2);
    }
  });

  it('stops at once if the caller aborts during an attempt or a wait', async () => {
    for (const failure of [stayMute, refuse(429, 'rate_limited', { 'retry-after': '30' })]) {
      replies = [failure];
      const abort = new AbortController();
      const call = create({ signal: abort.signal });
      const reason = new Error('the shop is closed');
      setTimeout(() => abort.abort(reason), 300);
      await assert.rejects(call, reason);
    }
    assert.equal(requests.length, 2);
  });

  it('does not follow a redirect, which would send the key elsewhere', async () => {
    replies = [send(301, '', { location: `${server.url}/elsewhere` })];
    const error = await caught(client.balance.get());
    assert.deepEqual([error.status, error.code, requests.length], [301, 'unexpected_response', 1]);
  });

  it('does not show its API key when it or an error is printed', async () => {
    replies = [refuse(401, 'invalid_api_key')];
    const error = await caught(client.account.ping());
    assert.ok(!inspect([client, error], { depth: 20, showHidden: true }).includes(API_KEY));
    assert.ok(!JSON.stringify([client, error]).includes(API_KEY));
  });

  it('refuses a list that has no body, and takes no body for what 204 says', async () => {
    replies = [send(200, ''), send(200, 'null'), send(204, '')];
    for (const call of [
      client.cards.list({}, { maxRetries: 0 }),
      client.events.list({}, { maxRetries: 0 }),
    ]) {
      const error = await caught(Promise.resolve(call));
      assert.deepEqual([error.status, error.code], [200, 'unexpected_response']);
    }
    await client.apiKeys.revoke('key_1');
  });

  it('requests the pages of a list as they are needed', async () => {
    const page = (ids: string[], cursor: string | null) =>
      send(200, {
        object: 'list',
        data: ids.map((id) => ({ id })),
        has_more: cursor !== null,
        next_cursor: cursor,
      });
    replies = [page(['c', 'b'], 'b'), page(['a'], null)];
    const list = client.cards.list({ limit: 2, status: 'active' });
    assert.equal(requests.length, 0);
    const ids: string[] = [];
    for await (const { id } of list) ids.push(id);
    assert.deepEqual(ids, ['c', 'b', 'a']);
    const wanted = ['/v1/cards?limit=2&status=active', '/v1/cards?limit=2&status=active&starting_after=b'];
    assert.deepEqual(
      requests.map(({ url }) => url),
      wanted,
    );
    replies = [page(['c', 'b'], 'b')];
    for await (const { id } of client.cards.list()) if (id === 'c') break;
    replies = [page(['c', 'b'], 'b')];
    assert.deepEqual((await client.cards.list()).data, [{ id: 'c' }, { id: 'b' }]);
    assert.equal(requests.length, 4);
  });

  it('does not let a wrong id become another path', async () => {
    for (const id of ['', '..', '../balance', 'card_1?limit=1', 'card_1/block']) {
      await assert.rejects(client.cards.get(id), /cardId is not an id or a month/);
    }
    assert.equal(requests.length, 0);
  });

  it('refuses an API key or a base URL that cannot be right', () => {
    for (const apiKey of ['', 'sk_test_', 'pk_test_abc', 'sk_test_a b', ' sk_test_a']) {
      assert.throws(
        () => new CardIssuing({ apiKey, baseUrl: server.url }),
        /apiKey must begin with sk_test_/,
      );
    }
    for (const baseUrl of [
      '',
      'api.example.com/v1',
      'https://api.example.com',
      'https://api.example.com/v2',
    ]) {
      assert.throws(() => new CardIssuing({ apiKey: API_KEY, baseUrl }), /baseUrl/);
    }
    assert.equal(
      new CardIssuing({ apiKey: 'sk_live_a', baseUrl: 'https://api.example.com/v1/' }).mode,
      'live',
    );
  });
});
