import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { adjustBalance } from '../../accounts/adjust-balance.ts';
import { expectError } from '../support/api/answers.ts';
import { balanceOf } from '../support/money.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';

describe('POST /test/credit', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    partner = await stack.createPartner();
  });

  const credit = (amount: unknown, idempotencyKey: string = randomUUID()) =>
    partner.call('POST', '/test/credit', { body: { amount }, idempotencyKey });

  it('answers 201 with the new balance of test mode alone', async () => {
    await credit(1);
    const { status, json } = await credit(10_000_000);
    assert.equal(status, 201);
    assert.deepEqual(json, {
      ...{ object: 'balance', mode: 'test', currency: 'USD' },
      ...{ available: 10_000_001, held: 0, total: 10_000_001 },
    });
    assert.deepEqual(await balanceOf(partner, 'live'), [0, 0, 0]);
  });

  it('refuses with 400 a credit that would take the balance past the largest integer, and keeps nothing of it', async () => {
    await adjustBalance(stack.operator, {
      ...{ partnerId: partner.id, mode: 'test', amountCents: Number.MAX_SAFE_INTEGER - 10 },
      ...{ reason: 'a test', key: null },
    });
    expectError(await credit(11, 'k'), 'validation_failed', ['amount']);
    assert.equal((await credit(10, 'k')).json.total, Number.MAX_SAFE_INTEGER);
  });

  it('allows 60 credits in any hour, without counting replays and refusals, and then answers 429', async () => {
    for (let i = 0; i < 59; i++) assert.equal((await credit(1, `k-${i}`)).status, 201);
    for (let i = 0; i < 5; i++) assert.equal((await credit(1, `k-${i}`)).status, 201);
    for (const refused of [0, 10_000_001, '1']) assert.equal((await credit(refused)).status, 400);
    expectError(await credit(2, 'k-0'), 'idempotency_conflict');
    assert.equal((await credit(1, 'k-59')).status, 201);

    const refusal = await credit(1, 'k-60');
    expectError(refusal, 'rate_limited');
    const retryAfter = refusal.headers.get('retry-after') ?? '';
    assert.match(retryAfter, /^\d+$/);
    assert.ok(Number(retryAfter) > 3_000 && Number(retryAfter) <= 3_600, retryAfter);
    assert.deepEqual(await balanceOf(partner), [60, 0, 60]);
    assert.equal((await credit(1, 'k-0')).headers.get('idempotent-replayed'), 'true');

    // An hour after the first of them there is room for one, under the very key that was refused.
    await asOwner(
      stack,
      `UPDATE faucet_credit SET created_at = created_at - interval '1 hour'
       WHERE id = (SELECT min(id) FROM faucet_credit WHERE partner_id = $1)`,
      [partner.id],
    );
    assert.equal((await credit(1, 'k-60')).json.total, 61);
    expectError(await credit(1), 'rate_limited');
  });

  it('counts simultaneous credits one after the other', async () => {
    for (let i = 0; i < 50; i++) await credit(1);
    const answers = await Promise.all(Array.from({ length: 30 }, () => credit(1)));
    const count = (wanted: number) => answers.filter(({ status }) => status === wanted).length;
    assert.deepEqual([count(201), count(429)], [10, 20]);
    assert.deepEqual(await balanceOf(partner), [60, 0, 60]);
  });
});
