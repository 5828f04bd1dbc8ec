import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createRateLimit } from '../../../api/http/rate-limit.ts';
import { ApiError } from '../../../domain/api-error.ts';
import { expectError } from '../../support/api/answers.ts';
import { type Answer, startTestStack, type TestStack } from '../../support/stack.ts';

describe('createRateLimit', () => {
  let nowMs: number;
  beforeEach(() => {
    nowMs = 12_345.678;
  });
  const limitOf = (perSecond: number, burst: number) => createRateLimit({ perSecond, burst }, () => nowMs);
  /** How many of `requests` at once get through. */
  const taken = (limit: (key: string) => void, requests: number, key = 'key_1') => {
    let count = 0;
    for (let i = 0; i < requests; i++) {
      try {
        limit(key);
        count += 1;
      } catch (error) {
        assert.ok(error instanceof ApiError && error.code === 'rate_limited');
      }
    }
    return count;
  };

  for (const [perSecond, burst] of [
    [100, 200],
    [3, 7],
    [7, 7],
    [10, 0],
  ] as const) {
    it(`lets ${perSecond} a second through for ever, and ${Math.max(burst, perSecond)} at once after a pause`, () => {
      const limit = limitOf(perSecond, burst);
      assert.equal(taken(limit, 1_000), Math.max(burst, perSecond));
      for (let second = 0; second < 5; second++) {
        nowMs += 1_000;
        assert.equal(taken(limit, 1_000), perSecond);
      }
      nowMs += 3_600_000;
      assert.equal(taken(limit, 1_000), Math.max(burst, perSecond));
    });
  }

  it('counts each key by itself', () => {
    const limit = limitOf(2, 2);
    assert.equal(taken(limit, 5, 'key_1'), 2);
    assert.equal(taken(limit, 5, 'key_2'), 2);
  });

  it('says how long to wait, in whole seconds, and is right about it', () => {
    const limit = limitOf(1, 1);
    limit('key_1');
    nowMs += 100;
    try {
      limit('key_1');
      assert.fail('it was let through');
    } catch (error) {
      assert.ok(error instanceof ApiError);
      assert.equal(error.detail.retryAfterSeconds, 1);
    }
    nowMs += 900;
    limit('key_1');
  });

  it('is off where 0 a second are allowed', () => {
    assert.equal(taken(limitOf(0, 0), 1_000), 1_000);
  });
});

describe('the general limit', () => {
  let stack: TestStack;
  before(async () => {
    stack = await startTestStack({ rateLimitPerSecond: 1, rateLimitBurst: 3 }, { worker: false });
  });
  after(() => stack.stop());

  /** Asks until it is too much. */
  const firstRefusal = async (ask: () => Promise<Answer>) => {
    for (;;) {
      const answer = await ask();
      if (answer.status === 429) return answer;
    }
  };

  it('answers 429 with Retry-After, for the one key alone', async () => {
    const partner = await stack.createPartner();
    const refusal = await firstRefusal(() => partner.call('GET', '/ping'));
    expectError(refusal, 'rate_limited');
    assert.match(refusal.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
    assert.equal((await partner.call('GET', '/ping', { mode: 'live' })).status, 200);
  });

  it('does not keep a 429 under the Idempotency-Key', async () => {
    const partner = await stack.createPartner();
    let key = '';
    let credits = 0;
    const credit = (amount: number) =>
      partner.call('POST', '/test/credit', { body: { amount }, idempotencyKey: key });
    await firstRefusal(async () => {
      key = randomUUID();
      const answer = await credit(1);
      if (answer.status === 201) credits += 1;
      return answer;
    });
    let answer = await credit(1_000);
    while (answer.status === 429) answer = await credit(1_000);
    assert.equal(answer.status, 201, answer.text);
    assert.equal(answer.json.total, credits + 1_000);
  });
});
