import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { expectError, expectReplay } from '../support/api/answers.ts';
import { assertLedgerClean, balanceOf, fundedPartner } from '../support/money.ts';
import { connectTo, ownerUrlOf } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner } from '../support/stack.ts';

describe('an account whose rows somebody has locked', () => {
  const credit = (partner: TestPartner, idempotencyKey: string = randomUUID()) =>
    partner.call('POST', '/test/credit', { body: { amount: 500 }, idempotencyKey });

  it('gets 503 in time and can retry, and other accounts are not delayed', async () => {
    const stack = await sharedStack('api');
    await using holder = await connectTo(ownerUrlOf(stack.config.databaseUrl));
    const [locked, other] = await Promise.all([fundedPartner(stack, 1_000), fundedPartner(stack, 1_000)]);
    const keys = Array.from({ length: 20 }, () => randomUUID());
    await holder.query('BEGIN');
    await holder.query('SELECT FROM account_usage WHERE partner_id = $1 FOR UPDATE', [locked.id]);
    let isLocked = true;
    const answers = Promise.all(keys.map((key) => credit(locked, key))).finally(() => {
      isLocked = false;
    });
    for (let taken = 0; taken < 10; taken++) assert.equal((await credit(other)).status, 201);
    assert.ok(isLocked, 'nobody waited for the lock');
    for (const answer of await answers) expectError(answer, 'unavailable');
    await holder.query('ROLLBACK');

    const [again, replay] = [await credit(locked, keys[0]), await credit(locked, keys[0])];
    assert.equal(again.status, 201, again.text);
    expectReplay(replay, again);
    assert.deepEqual(await balanceOf(locked), [1_500, 0, 1_500]);
    await assertLedgerClean(stack, locked);
  });
});
