import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { pruneUsage, shareUsage } from '../../accounts/usage.ts';
import { createRateLimit, type RateLimit } from '../../api/http/rate-limit.ts';
import { createStorageBudget } from '../../api/http/storage-budget.ts';
import { createUsageBuckets } from '../../api/http/usage-buckets.ts';
import { startApi } from '../../api/server.ts';
import { freePort } from '../../dev/free-port.ts';
import { ApiError } from '../../domain/api-error.ts';
import { expectError } from '../support/api/answers.ts';
import { withNewKey } from '../support/api/keys.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import {
  type Answer,
  partnerAt,
  startTestStack,
  type TestPartner,
  type TestStack,
} from '../support/stack.ts';
import { until } from '../support/until.ts';

/** How long a refused request has to wait. */
function waitSecondsOf(refused: () => void): number {
  try {
    refused();
  } catch (error) {
    assert.ok(error instanceof ApiError && error.code === 'rate_limited');
    return error.detail.retryAfterSeconds ?? 0;
  }
  assert.fail('it was let through');
}

describe('a rate limit', () => {
  let nowMs: number;
  beforeEach(() => {
    nowMs = 12_345.678;
  });
  const limitOf = (perSecond: number, burst: number) => {
    const buckets = createUsageBuckets(() => nowMs);
    return { ...createRateLimit({ perSecond, burst }, buckets), exchange: buckets.exchange };
  };
  /** How many of `requests` at once get through. */
  const taken = (limit: RateLimit, requests: number, keyId = 'key_1', partnerId = `of ${keyId}`) => {
    let count = 0;
    for (let i = 0; i < requests; i++) {
      try {
        limit.take({ keyId, partnerId, mode: 'test' });
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

  it('lets all keys of an account send as much as two of them, and no other account less', () => {
    const limit = limitOf(100, 200);
    const ofAccount = (partnerId: string) =>
      [1, 2, 3, 4, 5].map((index) => taken(limit, 200, `${partnerId}'s key ${index}`, partnerId));
    assert.deepEqual(ofAccount('prt_1'), [200, 200, 0, 0, 0]);
    assert.deepEqual(ofAccount('prt_1'), [0, 0, 0, 0, 0]);
    assert.deepEqual(ofAccount('prt_2'), [200, 200, 0, 0, 0]);
    nowMs += 1_000;
    assert.deepEqual(ofAccount('prt_1'), [100, 100, 0, 0, 0]);
  });

  it('takes nothing from the account for what it refuses a key', () => {
    const limit = limitOf(1, 2);
    assert.equal(taken(limit, 1_000, 'key_1', 'prt_1'), 2);
    assert.equal(taken(limit, 1_000, 'key_2', 'prt_1'), 2);
  });

  it('says how many requests are left and when there are more, as Retry-After does', () => {
    const caller = { keyId: 'key_1', partnerId: 'of key_1', mode: 'test' } as const;
    const limit = limitOf(4, 7);
    const left = () => limit.headers(caller).RateLimit;
    assert.deepEqual(limit.headers(caller), {
      'RateLimit-Policy': '"key";q=7;w=2, "account";q=14;w=2',
      RateLimit: '"key";r=7;t=1, "account";r=14;t=1',
    });
    limit.take(caller);
    assert.equal(left(), '"key";r=6;t=1, "account";r=13;t=1');
    assert.equal(taken(limit, 10), 6);
    assert.equal(left(), '"key";r=0;t=1, "account";r=7;t=1');
    nowMs += 500;
    assert.equal(left(), '"key";r=2;t=1, "account";r=11;t=1');
    const slow = limitOf(0.2, 1);
    slow.take(caller);
    nowMs += 1_500;
    assert.equal(slow.headers(caller).RateLimit, '"key";r=0;t=4, "account";r=1;t=1');
    assert.equal(
      waitSecondsOf(() => slow.take(caller)),
      4,
    );
    nowMs += 3_500;
    slow.take(caller);
  });

  it('is off if 0 a second are allowed', () => {
    assert.equal(taken(limitOf(0, 0), 1_000), 1_000);
    assert.deepEqual(limitOf(0, 0).headers({ keyId: 'key_1', partnerId: 'prt_1', mode: 'test' }), {});
  });

  describe('across processes', () => {
    let stack: TestStack;
    before(async () => {
      stack = await sharedStack();
    });
    const exchange = (limit: ReturnType<typeof limitOf>) =>
      limit.exchange((usedMs) => shareUsage(stack.orm, usedMs));

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
          return shareUsage(stack.orm, usedMs);
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

    it('counts what was used, and no hour more, after the clock of the database was set back by an hour', async () => {
      const [one, two] = [limitOf(1, 100), limitOf(1, 100)];
      const key = randomUUID();
      assert.equal(taken(one, 40, key), 40);
      await exchange(one);
      const hour = `UPDATE usage_bucket SET full_at = full_at + interval '1 hour', counted_at = counted_at + interval '1 hour'
        WHERE strpos(name, $1) > 0`;
      await asOwner(stack, hour, [key]);
      assert.equal(taken(two, 10, key), 10);
      await exchange(two);
      const left = taken(two, 100, key);
      assert.ok(left >= 50 && left < 80, String(left));
    });

    it('is deleted once it counts no more, whoever it is of', async () => {
      const [reveals, key] = [`reveal/${randomUUID()}`, randomUUID()];
      await shareUsage(stack.orm, new Map([reveals, key].map((name) => [name, 60_000])));
      const long = `UPDATE usage_bucket SET full_at = now() - interval '2 hours' WHERE name = $1`;
      await asOwner(stack, long, [reveals]);
      await pruneUsage(stack.orm);
      const left = await asOwner(stack, 'SELECT name FROM usage_bucket WHERE name IN ($1, $2)', [
        reveals,
        key,
      ]);
      assert.deepEqual(left, [{ name: key }]);
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
});

describe('the budget of what requests store', () => {
  let nowMs = 12_345.678;
  const account = { partnerId: 'prt_1', mode: 'test' } as const;
  const budgetOf = (bytesPerDay: number) =>
    createStorageBudget(
      { bytesPerDay },
      createUsageBuckets(() => nowMs),
    );

  it('is free again when Retry-After says, belongs to one account and mode, and is off if it is 0', () => {
    const budget = budgetOf(1_000);
    budget.add(account, 900);
    budget.check(account);
    budget.add(account, 200);
    const waitSeconds = waitSecondsOf(() => budget.check(account));
    // It fills up by 1,000 bytes a day, and 101 are missing.
    assert.equal(waitSeconds, Math.ceil(0.101 * 86_400));
    budget.check({ ...account, mode: 'live' });
    budget.check({ ...account, partnerId: 'prt_2' });
    nowMs += waitSeconds * 1_000;
    budget.check(account);
    const unlimited = budgetOf(0);
    unlimited.add(account, Number.MAX_SAFE_INTEGER);
    unlimited.check(account);
  });
});

describe('the general limit', () => {
  const BURST = 60;
  let stack: TestStack;
  before(async () => {
    const limits = { rateLimitPerSecond: 1, rateLimitBurst: BURST, storedBytesPerDay: 10_000 };
    stack = await startTestStack(limits, { worker: false });
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
      /^This API key can send 1 requests a second, and 60 at once after a pause\. /,
    );
    assert.match(refusal.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
    const policy = '"key";q=60;w=60, "account";q=120;w=60';
    assert.equal(refusal.headers.get('ratelimit-policy'), policy);
    assert.match(refusal.headers.get('ratelimit') ?? '', /^"key";r=0;t=[1-9]\d*, "account";r=\d+;t=1$/);
    const { status, headers } = await partner.call('GET', '/nothing', { mode: 'live' });
    assert.deepEqual([status, headers.get('ratelimit-policy')], [404, policy]);
    assert.equal(headers.get('ratelimit'), '"key";r=59;t=1, "account";r=119;t=1');
  });

  it('is that of two keys for an account with more keys, and says so; another account has its own', async () => {
    const partner = await stack.createPartner();
    for (const other of [await withNewKey(stack, partner), await withNewKey(stack, partner)])
      await firstRefusal(() => other.call('GET', '/ping'));
    const refusal = await firstRefusal(() => partner.call('GET', '/ping'));
    expectError(refusal, 'rate_limited');
    assert.match(
      refusal.json.error.message,
      /^This account's API keys of this mode together can send 2 requests a second, and 120 at once after a pause\. /,
    );
    assert.match(refusal.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
    assert.equal((await partner.call('GET', '/ping', { mode: 'live' })).status, 200);
    assert.equal((await (await stack.createPartner()).call('GET', '/ping')).status, 200);
  });

  it('is shared by two API processes', async () => {
    const partner = await stack.createPartner();
    const second = await startApi({ ...stack.config, port: await freePort() }, pino({ level: 'silent' }));
    try {
      const there = partnerAt(partner, second.url);
      await firstRefusal(() => partner.call('GET', '/ping'));
      assert.equal((await there.call('GET', '/ping')).status, 200);
      let answered = 1;
      await until('the other process has refused the key', async () => {
        const { status } = await there.call('GET', '/ping');
        if (status === 200) answered += 1;
        return status === 429;
      });
      assert.ok(answered < BURST, `it was refused only after ${answered}`);
    } finally {
      await second.stop();
    }
  });

  it('has a budget of what requests store beside it, which refuses changes once it is used up, but neither reads nor another account', async () => {
    const [partner, other] = [await stack.createPartner(), await stack.createPartner()];
    const credit = (of: TestPartner) =>
      of.call('POST', '/test/credit', { body: { amount: 1 }, idempotencyKey: randomUUID() });
    let refused = await credit(partner);
    assert.equal(refused.status, 201, refused.text);
    while (refused.status === 201) refused = await credit(partner);
    expectError(refused, 'rate_limited');
    assert.match(refused.json.error.message, /have stored as much as they can within a day/);
    assert.match(refused.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
    assert.equal((await partner.call('GET', '/balance')).status, 200);
    assert.equal((await partner.call('GET', '/ping', { mode: 'live' })).status, 200);
    assert.equal((await credit(other)).status, 201);
  });
});
