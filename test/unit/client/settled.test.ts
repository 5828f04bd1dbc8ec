import assert from 'node:assert/strict';
import { CardIssuing, CardIssuingError, StillPendingError } from '../../../client/index.ts';
import { type LoopbackServer, listenOnLoopback } from '../../support/sockets.ts';

type Reply = 'lost' | 'mute' | [status: number, body: object, headers?: Record<string, string>];

describe('waitUntilSettled', () => {
  let server: LoopbackServer;
  let replies: Reply[];
  let paths: (string | undefined)[];
  let client: CardIssuing;

  beforeEach(async () => {
    replies = [];
    paths = [];
    server = await listenOnLoopback((request, response) => {
      paths.push(request.url);
      // The last reply is repeated.
      const reply = (replies.length > 1 ? replies.shift() : replies[0]) ?? 'mute';
      if (reply === 'lost') request.socket.destroy();
      else if (reply !== 'mute') response.writeHead(reply[0], reply[2]).end(JSON.stringify(reply[1]));
    });
    client = new CardIssuing({ apiKey: 'sk_test_nobody', baseUrl: `${server.url}/v1`, maxRetries: 0 });
  });
  afterEach(() => server.close());

  const card = (status: string): Reply => [200, { id: 'card_1', status }];
  const topup = (status: string): Reply => [200, { id: 'topup_1', status }];
  const error = (status: number, code: string, headers?: Record<string, string>): Reply => [
    status,
    { error: { type: 'api', code, message: code, request_id: 'req_1' } },
    headers,
  ];

  it('returns a card that is not pending, without a wait', async () => {
    for (const status of ['active', 'failed', 'frozen', 'blocked']) {
      replies = [card(status)];
      const settled = await client.cards.waitUntilSettled('card_1');
      assert.deepEqual([settled.status, settled.lastResponse.status], [status, 200]);
    }
    assert.deepEqual([...new Set(paths)], ['/v1/cards/card_1']);
    assert.equal(paths.length, 4);
  });

  it('polls a card and a top-up until they are settled', async () => {
    replies = [card('funding_pending'), card('funding_pending'), card('active')];
    assert.equal((await client.cards.waitUntilSettled('card_1')).status, 'active');
    replies = [topup('pending'), topup('failed')];
    assert.equal((await client.topups.waitUntilSettled('topup_1')).status, 'failed');
    assert.deepEqual(paths.slice(3), ['/v1/topups/topup_1', '/v1/topups/topup_1']);
  });

  it('goes on through lost connections, outages and the rate limit', async () => {
    replies = [
      'lost',
      error(503, 'unavailable'),
      error(429, 'rate_limited', { 'retry-after': '1' }),
      card('active'),
    ];
    assert.equal((await client.cards.waitUntilSettled('card_1')).status, 'active');
    assert.equal(paths.length, 4);
  });

  it('throws at the deadline, while it waits or while a response is missing, and says not to make another one', async () => {
    for (const reply of [topup('pending'), 'mute', error(503, 'unavailable')] as const) {
      replies = [reply];
      await assert.rejects(client.topups.waitUntilSettled('topup_1', { deadlineMs: 300 }), (thrown) => {
        assert.ok(thrown instanceof StillPendingError, String(thrown));
        assert.match(
          thrown.message,
          /^topup_1 is not known to be settled after 300 ms.*do not make another one/,
        );
        assert.equal(thrown.cause instanceof CardIssuingError, Array.isArray(reply) && reply[0] === 503);
        return thrown.id === 'topup_1';
      });
    }
  });

  it('stops at once if the caller aborts, while it waits or while a response is missing', async () => {
    for (const reply of [card('funding_pending'), 'mute'] as const) {
      replies = [reply];
      const reason = new Error('the shop is closed');
      const abort = new AbortController();
      setTimeout(() => abort.abort(reason), 200);
      await assert.rejects(client.cards.waitUntilSettled('card_1', { signal: abort.signal }), reason);
      await assert.rejects(client.cards.waitUntilSettled('card_1', { signal: abort.signal }), reason);
    }
  });

  it('throws an error that waiting does not cure', async () => {
    for (const [status, code] of [
      [404, 'card_not_found'],
      [401, 'invalid_api_key'],
    ] as const) {
      replies = [error(status, code)];
      await assert.rejects(client.cards.waitUntilSettled('card_1'), { name: 'CardIssuingError', code });
    }
    assert.equal(paths.length, 2);
  });
});
