import assert from 'node:assert/strict';
import {
  CardIssuing,
  CardIssuingConnectionError,
  CardIssuingError,
  type ErrorDetails,
  StillPendingError,
} from '../../../client/index.ts';
import { type WaitOptions, waitUntilSettled } from '../../../client/settled.ts';
import { listenOnLoopback } from '../../support/sockets.ts';

type Reply = string | CardIssuingError | 'mute';

const refusal = (status: number, code: ErrorDetails['code'], retryAfterSeconds: number | null = null) =>
  new CardIssuingError(code, {
    ...{ status, type: 'api', code, param: null, issues: [], requestId: 'req_1' },
    ...{ idempotencyKey: null, operationId: null, retryAfterSeconds },
  });
const LOST = new CardIssuingConnectionError('connection_failed', 'lost', null, null);

const untilAborted = (signal?: AbortSignal | null) =>
  new Promise<never>((_resolve, reject) => {
    if (signal?.aborted) reject(signal.reason);
    signal?.addEventListener('abort', () => reject(signal.reason));
  });

describe('waitUntilSettled', () => {
  let waitsMs: number[];
  let reads = 0;
  beforeEach(() => {
    waitsMs = [];
    reads = 0;
  });

  const wait = (
    replies: Reply[],
    options: WaitOptions = {},
    pause?: (signal?: AbortSignal) => Promise<void>,
  ) =>
    waitUntilSettled(
      {
        id: 'topup_1',
        pendingStatus: 'pending',
        read: async ({ signal }) => {
          const reply = replies[reads++] ?? assert.fail('it was read too often');
          if (reply === 'mute') return untilAborted(signal);
          if (reply instanceof CardIssuingError) throw reply;
          return { status: reply };
        },
        pause: async (waitMs, signal) => {
          waitsMs.push(waitMs);
          await pause?.(signal);
        },
      },
      options,
    );

  it('polls, with longer and longer pauses, until the status is another one', async () => {
    const pending = Array.from({ length: 10 }, () => 'pending');
    assert.deepEqual(await wait([...pending, 'failed']), { status: 'failed' });
    assert.deepEqual(waitsMs.slice(0, 3), [500, 750, 1_125]);
    assert.equal(waitsMs.at(-1), 10_000);
  });

  it('goes on through lost connections, outages and the rate limit, whose pause it keeps', async () => {
    const replies = [LOST, refusal(503, 'unavailable'), refusal(429, 'rate_limited', 7), 'succeeded'];
    assert.deepEqual(await wait(replies), { status: 'succeeded' });
    assert.deepEqual(waitsMs, [500, 750, 7_000]);
  });

  it('throws at the deadline, while it waits or while a response is missing, and says not to make another one', async () => {
    const outage = refusal(503, 'unavailable');
    for (const [reply, cause] of [
      ['pending', undefined],
      ['mute', undefined],
      [outage, outage],
    ] as const) {
      reads = 0;
      await assert.rejects(wait([reply], { deadlineMs: 20 }, untilAborted), (thrown) => {
        assert.ok(thrown instanceof StillPendingError, String(thrown));
        assert.match(
          thrown.message,
          /^topup_1 is not known to be settled after 20 ms.*do not make another one/,
        );
        assert.deepEqual([thrown.id, thrown.cause], ['topup_1', cause]);
        return true;
      });
    }
  });

  it('stops at once if the caller aborts, before, while it waits or while a response is missing', async () => {
    const reason = new Error('the shop is closed');
    for (const reply of ['pending', 'mute'] as const) {
      reads = 0;
      const abort = new AbortController();
      const waiting = wait([reply, reply], { signal: abort.signal }, untilAborted);
      setImmediate(() => abort.abort(reason));
      await assert.rejects(waiting, reason);
      await assert.rejects(wait(['mute', 'mute'], { signal: abort.signal }), reason);
    }
  });

  it('throws an error that waiting does not cure', async () => {
    for (const error of [refusal(404, 'card_not_found'), refusal(401, 'invalid_api_key')]) {
      reads = 0;
      await assert.rejects(wait([error]), error);
    }
    assert.deepEqual(waitsMs, []);
  });

  it('reads a card, a top-up or a withdrawal by its id', async () => {
    const paths: (string | undefined)[] = [];
    const server = await listenOnLoopback((request, response) => {
      paths.push(request.url);
      response.end(JSON.stringify({ status: 'failed' }));
    });
    const client = new CardIssuing({ apiKey: 'sk_test_nobody', baseUrl: `${server.url}/v1` });
    try {
      for (const resource of [client.cards, client.topups, client.withdrawals]) {
        const settled = await resource.waitUntilSettled('id_1');
        assert.deepEqual([settled.status, settled.lastResponse.status], ['failed', 200]);
      }
      assert.deepEqual(paths, ['/v1/cards/id_1', '/v1/topups/id_1', '/v1/withdrawals/id_1']);
    } finally {
      await server.close();
    }
  });
});
