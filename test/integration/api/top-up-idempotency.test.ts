import assert from 'node:assert/strict';
import { negotiateLimits } from '../../../commands/accounts/partners.ts';
import { MAX_AMOUNT_CENTS } from '../../../domain/money.ts';
import { expectError, expectReplay } from '../../support/api/answers.ts';
import { balanceOf } from '../../support/money.ts';
import { asOwner } from '../../support/postgres.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { Answer, TestStack } from '../../support/stack.ts';
import {
  type Cardholder,
  cardholder,
  listTopUps,
  settledTopUp,
  topUp,
  topUpEvents,
} from '../../support/top-ups.ts';

const FUNDS = 10_000;

describe("a top-up's Idempotency-Key", () => {
  let stack: TestStack;
  let test: Cardholder;
  let live: Cardholder;
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    test = await cardholder(stack, 'test', FUNDS);
    live = await cardholder(stack, 'live', FUNDS);
  });

  const withKey = (holder: Cardholder, amount: number, idempotencyKey = 'k') =>
    topUp(holder, amount, { idempotencyKey });

  it('replays a 201 byte for byte, even when the card has changed since', async () => {
    const first = await withKey(test, 1_000);
    assert.equal(first.status, 201, first.text);
    await topUp(test, 500);
    await asOwner(stack, `UPDATE card SET status = 'frozen' WHERE id = $1`, [test.cardId]);
    expectReplay(await withKey(test, 1_000), first);
    assert.equal((await listTopUps(test)).data.length, 2);
  });

  it('replays a 202 unchanged when the top-up has succeeded', async () => {
    const first = await withKey(live, 1_041);
    assert.equal(first.status, 202, first.text);
    assert.equal((await settledTopUp(live, first.json.id)).status, 'succeeded');
    expectReplay(await withKey(live, 1_041), first);
  });

  it('replays refusals, whatever the balance and the card are by then', async () => {
    await asOwner(stack, `UPDATE card SET status = 'frozen' WHERE id = $1`, [test.cardId]);
    const refused: [Cardholder, number, string, Answer][] = [];
    for (const [holder, amount, key, code] of [
      [test, 500, 'state', 'invalid_state'],
      [live, 99, 'limit', 'limit_exceeded'],
      [live, 9_900, 'funds', 'insufficient_funds'],
      [live, 542, 'network', 'provider_declined'],
    ] as const) {
      const answer = await withKey(holder, amount, key);
      expectError(answer, code);
      refused.push([holder, amount, key, answer]);
    }
    await asOwner(stack, `UPDATE card SET status = 'active' WHERE id = $1`, [test.cardId]);
    for (const [holder, amount, key, first] of refused)
      expectReplay(await withKey(holder, amount, key), first);
    for (const holder of [test, live]) assert.deepEqual((await listTopUps(holder)).data, []);
  });

  it('gets 422 with another amount, card or endpoint, and nothing changes', async () => {
    const first = await withKey(test, 1_000);
    expectError(await withKey(test, 1_001), 'idempotency_conflict');
    const { partner } = test;
    const another = await partner.call('POST', '/cards', {
      ...{ idempotencyKey: 'c', body: { amount: 100, external_ref: 'r' } },
    });
    assert.equal(another.status, 201, another.text);
    expectError(await withKey({ ...test, cardId: another.json.id }, 1_000), 'idempotency_conflict');
    expectError(await withKey({ ...test, cardId: another.json.id }, 1_000, 'c'), 'idempotency_conflict');
    const credit = { body: { amount: 1_000 }, idempotencyKey: 'k' };
    expectError(await partner.call('POST', '/test/credit', credit), 'idempotency_conflict');
    const freeze = await partner.call('POST', `/cards/${test.cardId}/freeze`, { idempotencyKey: 'k' });
    expectError(freeze, 'idempotency_conflict');
    expectReplay(await withKey(test, 1_000), first);
    assert.equal((await listTopUps(test)).data.length, 1);
  });

  it('can be used again after a 400, even one that depends on the fees', async () => {
    await negotiateLimits(stack.operator, test.partner.id, { maxCardCents: MAX_AMOUNT_CENTS });
    for (const amount of [0, MAX_AMOUNT_CENTS]) {
      expectError(await withKey(test, amount), 'validation_failed', ['amount']);
    }
    const answer = await withKey(test, 1_000);
    assert.equal(answer.status, 201, answer.text);
    assert.equal(answer.headers.get('idempotent-replayed'), null);
  });

  it('stands for another request in the other mode', async () => {
    const answers = [await withKey(test, 1_000), await withKey(live, 2_000)];
    assert.deepEqual(
      answers.map(({ status, json }) => [status, json.amount]),
      [
        [201, 1_000],
        [201, 2_000],
      ],
    );
  });

  for (const mode of ['test', 'live'] as const) {
    it(`makes one top-up in ${mode} mode for 20 simultaneous requests`, async () => {
      const holder = mode === 'test' ? test : live;
      const answers = await Promise.all(Array.from({ length: 20 }, () => withKey(holder, 1_000)));
      const ran = answers.filter(
        (answer) => answer.status < 400 && answer.headers.get('idempotent-replayed') === null,
      );
      assert.equal(ran.length, 1);
      for (const answer of answers) {
        if (answer.status === 409) expectError(answer, 'idempotency_in_flight');
        else assert.deepEqual([answer.status, answer.text], [201, ran[0]?.text]);
      }
      assert.deepEqual((await listTopUps(holder)).data, [ran[0]?.json]);
      assert.deepEqual(await balanceOf(holder.partner, mode), [FUNDS - 1_050, 0, FUNDS - 1_050]);
      assert.equal((await topUpEvents(stack, holder)).length, 1);
    });
  }
});
