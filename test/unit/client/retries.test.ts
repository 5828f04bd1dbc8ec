import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { inspect } from 'node:util';
import {
  ApiKeys,
  Cards,
  Events,
  Reports,
  WebhookEndpoint,
  WebhookEndpoints,
} from '../../../client/generated/resources.gen.ts';
import { HttpClient, pauseMs } from '../../../client/http.ts';
import { CardIssuing, CardIssuingConnectionError, CardIssuingError } from '../../../client/index.ts';
import { column } from '../../support/column.ts';
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
  let requests: { url: string; key: string }[];
  let client: CardIssuing;
  let http: HttpClient;
  let cards: Cards;
  let waitsMs: number[];
  let onWait: () => void;

  beforeEach(async () => {
    replies = [];
    requests = [];
    server = await listenOnLoopback((request, response) => {
      const key = request.headers['idempotency-key'];
      requests.push({ url: request.url ?? '', key: String(key) });
      request.resume().on('end', () => (replies.shift() ?? stayMute)(response, request));
    });
    const options = { baseUrl: `${server.url}/v1`, maxRetries: 3, timeoutMs: 30_000 };
    client = new CardIssuing({ apiKey: API_KEY, ...options });
    waitsMs = [];
    onWait = () => {};
    http = new HttpClient({ credentials: {}, ...options }, async (waitMs, signal) => {
      waitsMs.push(waitMs);
      onWait();
      signal?.throwIfAborted();
    });
    cards = new Cards(http);
  });
  afterEach(() => server.close());

  const create = (options?: object) => cards.create({ amount: 1, external_ref: 'a' }, options);
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
    replies = [stayMute, ...Array.from({ length: 20 }, () => send(201, CARD))];
    await create({ timeoutMs: 200, idempotencyKey: 'order-1', maxRetries: 20 });
    assert.ok(requests.length >= 2);
    assert.ok(requests.every(({ key }) => key === 'order-1'));
  });

  it('waits before each retry, for as long as Retry-After says, and gives up after the configured number', async () => {
    replies = [
      refuse(503, 'unavailable'),
      refuse(503, 'unavailable', { 'retry-after': '7' }),
      refuse(503, 'unavailable'),
    ];
    const error = await caught(create({ maxRetries: 2 }));
    assert.deepEqual([error.status, error.code, requests.length], [503, 'unavailable', 3]);
    const [first = 0, second = 0, ...more] = waitsMs;
    assert.ok(first >= 250 && first <= 500, `${first} ms`);
    assert.deepEqual([second, more], [7_000, []]);
  });

  for (const [attempt, longestMs] of [
    [0, 500],
    [1, 1_000],
    [2, 2_000],
    [9, 8_000],
  ] as const) {
    it(`waits ${longestMs / 2} to ${longestMs} ms after attempt ${attempt + 1}`, () => {
      assert.deepEqual([pauseMs(attempt, null, 1), pauseMs(attempt, null, 0)], [longestMs / 2, longestMs]);
    });
  }

  it('reports a connection that stays lost, with the key to try again with', async () => {
    replies = [hangUp, hangUp];
    const error = await caught(create({ maxRetries: 1 }));
    assert.ok(error instanceof CardIssuingConnectionError);
    assert.deepEqual([error.status, error.type, error.code], [null, 'connection', 'connection_failed']);
    assert.equal(error.idempotencyKey, requests[0]?.key);
    assert.ok(error.cause instanceof Error);
    const failed = `The connection to ${new URL(server.url).host} failed: UND_ERR_SOCKET, other side closed. `;
    assert.ok(error.message.startsWith(failed), error.message);
    assert.match(error.message, /may have been carried out: retry with this error's idempotencyKey/);
  });

  it('says that a proxy responded, and what to do about a request that moves money', async () => {
    replies = [send(502, '<h1>Bad Gateway</h1>')];
    const error = await caught(create({ maxRetries: 0 }));
    assert.equal(error.code, 'unexpected_response');
    assert.match(error.message, /with status 502, is not the API.*retry with this error's idempotencyKey/);
  });

  it('refuses an Idempotency-Key that the API would refuse, without a request', async () => {
    for (const idempotencyKey of ['', 'a\nb', '\u00fc', 'x'.repeat(256)]) {
      await assert.rejects(create({ idempotencyKey }), /^TypeError: idempotencyKey must have 1 to 255/);
    }
    assert.equal(requests.length, 0);
  });

  for (const { what, end, timeoutMs, code } of [
    { what: 'stalls', end: stayMute, timeoutMs: 100, code: 'timed_out' },
    { what: 'breaks off', end: hangUp, timeoutMs: 30_000, code: 'connection_failed' },
  ]) {
    it(`reports a download whose refusal ${what} as one that got no response`, async () => {
      replies = [
        (response, request) =>
          response.writeHead(503, { 'content-length': 100 }).write('{"error"', () => end(response, request)),
      ];
      const query = { from: '2026-11-01T00:00:00Z', to: '2026-12-01T00:00:00Z' };
      const error = await caught(new Reports(http).deposits(query, { maxRetries: 0, timeoutMs }));
      assert.ok(error instanceof CardIssuingConnectionError, inspect(error));
      assert.equal(error.code, code);
      if (code === 'timed_out') assert.match(error.message, /100 ms/);
    });
  }

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
    const [endpoint, endpoints] = [new WebhookEndpoint(http), new WebhookEndpoints(http)];
    const keys = new ApiKeys(http);
    const calls = [
      () => endpoint.set({ url: 'https://hooks.example.com/' }),
      () => endpoint.rotateSecret(),
      () => endpoint.test(),
      () => endpoint.delete(),
      () => new Events(http).resend('evt_1'),
      () => cards.getSecureDetails('card_1'),
      () => keys.create({ name: 'a' }),
      () => keys.rotate('key_1'),
      () => endpoints.create({ url: 'https://hooks.example.com/' }),
      () => endpoints.replay('we_1', { created_gte: '2026-11-20T08:00:00Z' }),
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
    const reason = new Error('the shop is closed');
    for (const during of ['attempt', 'wait'] as const) {
      const abort = new AbortController();
      const shut = () => abort.abort(reason);
      replies = [during === 'attempt' ? shut : refuse(429, 'rate_limited')];
      onWait = shut;
      await assert.rejects(create({ signal: abort.signal }), reason);
    }
    assert.deepEqual([requests.length, waitsMs.length], [2, 1]);
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

  it('requests the pages of a list as they are needed', async () => {
    const page = (ids: string[], next_cursor: string | null) => {
      const data = ids.map((id) => ({ id }));
      return send(200, { object: 'list', data, has_more: next_cursor !== null, next_cursor });
    };
    replies = [page(['c', 'b'], 'b'), page(['a'], null)];
    const list = client.cards.list({ limit: 2, status: 'active' });
    assert.equal(requests.length, 0);
    const ids: string[] = [];
    for await (const { id } of list) ids.push(id);
    assert.deepEqual(ids, ['c', 'b', 'a']);
    const wanted = ['/v1/cards?limit=2&status=active', '/v1/cards?limit=2&status=active&starting_after=b'];
    assert.deepEqual(column(requests, 'url'), wanted);
    replies = [page(['c', 'b'], 'b')];
    for await (const { id } of client.cards.list()) if (id === 'c') break;
    replies = [page(['c', 'b'], 'b')];
    assert.deepEqual((await client.cards.list()).data, [{ id: 'c' }, { id: 'b' }]);
    assert.equal(requests.length, 4);
  });

  it('does not let a wrong id become another path', async () => {
    for (const id of ['', '..', '../balance', 'card_1?limit=1', 'card_1/block']) {
      await assert.rejects(client.cards.get(id), /cardId must have only letters, digits, _ and -/);
    }
    assert.equal(requests.length, 0);
  });

  it('refuses an API key or a base URL that cannot be right', () => {
    for (const apiKey of ['', 'sk_test_', 'pk_test_abc', 'sk_test_a b', ' sk_test_a']) {
      const make = () => new CardIssuing({ apiKey, baseUrl: server.url });
      assert.throws(make, /apiKey must begin with sk_test_/);
    }
    const noV1 = /baseUrl must be a URL that ends with \/v1/;
    const noTls = /baseUrl must begin with https/;
    for (const [baseUrl, why] of [
      [undefined, /^TypeError: baseUrl is missing/],
      ['', /^TypeError: baseUrl is missing/],
      ['api.example.com/v1', noV1],
      ['https://api.example.com', noV1],
      ['https://api.example.com/v2', noV1],
      ['https://api.example.com/?to=/v1', noV1],
      ['http://api.example.com/v1', noTls],
      ['http://127.0.0.1.example.com/v1', noTls],
      ['ftp://localhost/v1', noTls],
      ['https://me:secret@api.example.com/v1', /baseUrl must not have a user name or a password: [^@]*$/],
    ] as const) {
      assert.throws(() => new CardIssuing({ apiKey: API_KEY, baseUrl: baseUrl as string }), why);
    }
    for (const host of ['localhost:3000', '127.0.0.1', '[::1]:3000'])
      assert.equal(new CardIssuing({ apiKey: `${API_KEY}\n`, baseUrl: `http://${host}/v1` }).mode, 'test');
    const live = new CardIssuing({ apiKey: 'sk_live_a', baseUrl: 'https://api.example.com/v1/' });
    assert.equal(live.mode, 'live');
  });
});
