import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createRateLimit, type RateLimit } from '../../../api/http/rate-limit.ts';
import { shareKeyUsage } from '../../../commands/accounts/key-usage.ts';
import { ApiError } from '../../../domain/api-error.ts';
import { expectError } from '../../support/api/answers.ts';
import { type Answer, startTestStack, type TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

describe('a rate limit', () => {
  let nowMs: number;
  beforeEach(() => {
    nowMs = 12_345.678;
  });
  const limitOf = (perSecond: number, burst: number) => createRateLimit({ perSecond, burst }, () => nowMs);
  /** How many of `requests` at once get through. */
  const taken = (limit: RateLimit, requests: number, key = 'key_1') => {
    let count = 0;
    for (let i = 0; i < requests; i++) {
      try {
        limit.take(key);
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
    it(`allows ${perSecond} a second for ever, and ${Math.max(burst, perSecond)} at once after a pause`, () => {
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

  it('counts each key separately', () => {
    const limit = limitOf(2, 2);
    assert.equal(taken(limit, 5, 'key_1'), 2);
    assert.equal(taken(limit, 5, 'key_2'), 2);
  });

  it('says how many whole seconds to wait, and is right', () => {
    const limit = limitOf(1, 1);
    limit.take('key_1');
    nowMs += 100;
    try {
      limit.take('key_1');
      assert.fail('it was let through');
    } catch (error) {
      assert.ok(error instanceof ApiError);
      assert.equal(error.detail.retryAfterSeconds, 1);
    }
    nowMs += 900;
    limit.take('key_1');
  });

  describe('across processes', () => {
    let stack: TestStack;
    before(async () => {
      stack = await startTestStack({}, { worker: false });
    });
    after(() => stack.stop());
    const exchange = (limit: RateLimit) => limit.exchange((usedMs) => shareKeyUsage(stack.orm, usedMs));

    it('is one limit for all of them, and remembers what was used beyond it', async () => {
      const [one, two, three] = [limitOf(1, 100), limitOf(1, 100), limitOf(1, 100)];
      const key = randomUUID();
      assert.equal(taken(one, 200, key), 100);
      assert.equal(taken(two, 70, key), 70);
      assert.equal(taken(three, 5, key), 5);
      for (const limit of [one, two, three]) await exchange(limit);
      // Together they let 175 through: 75 too many.
      assert.equal(taken(three, 10, key), 0);
      nowMs += 70_000;
      assert.equal(taken(three, 10, key), 0);
      nowMs += 15_000;
      assert.ok(taken(three, 100, key) > 0);
      assert.equal(taken(three, 10, randomUUID()), 10);
    });

    it('shares the counts of many keys in one statement, and leaves out keys that used little', async () => {
      const limit = limitOf(1, 100);
      const keys = Array.from({ length: 500 }, () => randomUUID());
      for (const key of keys) taken(limit, 5, key);
      taken(limit, 4, 'key_quiet');
      const told: number[] = [];
      const count = () =>
        limit.exchange(async (usedMs) => {
          told.push(usedMs.size);
          return shareKeyUsage(stack.orm, usedMs);
        });
      await count();
      await count();
      assert.deepEqual(told, [500]);
      taken(limit, 1, 'key_quiet');
      await count();
      assert.deepEqual(told, [500, 1]);
    });

    it('uses its own count while the others cannot be reached, and shares it afterwards', async () => {
      const [one, two] = [limitOf(1, 100), limitOf(1, 100)];
      const key = randomUUID();
      assert.equal(taken(one, 60, key), 60);
      await assert.rejects(one.exchange(() => Promise.reject(new Error('the database is away'))));
      assert.equal(taken(one, 60, key), 40);
      await exchange(one);
      assert.equal(taken(two, 5, key), 5);
      await exchange(two);
      assert.equal(taken(two, 5, key), 0);
    });

    it('adds up what processes share at the same time', async () => {
      const limits = Array.from({ length: 8 }, () => limitOf(1, 100));
      const keys = Array.from({ length: 40 }, () => randomUUID());
      for (const limit of limits) for (const key of keys) taken(limit, 10, key);
      await Promise.all(limits.map(exchange));
      const last = limitOf(1, 100);
      for (const key of keys) taken(last, 5, key);
      await exchange(last);
      // 85 seconds of each bucket are used; what the statements took has been refilled.
      for (const key of keys) {
        const left = taken(last, 100, key);
        assert.ok(left >= 15 && left < 45, String(left));
      }
    });
  });

  it('is off if 0 a second are allowed', () => {
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

  it('answers 429 with Retry-After, and only to the key that exceeded it', async () => {
    const partner = await stack.createPartner();
    const refusal = await firstRefusal(() => partner.call('GET', '/ping'));
    expectError(refusal, 'rate_limited');
    assert.match(
      refusal.json.error.message,
      /^This API key can send 1 requests a second, and 3 at once after a pause\. /,
    );
    assert.match(refusal.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
    assert.equal((await partner.call('GET', '/ping', { mode: 'live' })).status, 200);
  });

  it('is shared by two API processes', async () => {
    const burst = 60;
    const limits = { rateLimitPerSecond: 1, rateLimitBurst: burst };
    const one = await startTestStack(limits, { worker: false });
    const { databaseUrl, encryptionKeys } = one.config;
    const two = await startTestStack(
      { ...limits, databaseUrl, encryptionKeys },
      { worker: false, product: false },
    );
    try {
      const partner = await one.createPartner();
      await firstRefusal(() => partner.call('GET', '/ping'));
      const elsewhere = `http://${two.config.host}:${two.config.port}/v1/ping`;
      let answered = 0;
      await until('the other process has refused the key', async () => {
        const answer = await fetch(elsewhere, { headers: { authorization: `Bearer ${partner.keys.test}` } });
        await answer.text();
        answered += 1;
        return answer.status === 429;
      });
      assert.ok(answered < burst, `it was refused only after ${answered}`);
    } finally {
      await two.stop();
      await one.stop();
    }
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
