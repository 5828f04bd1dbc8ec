import assert from 'node:assert/strict';
import { expectError } from '../support/api/answers.ts';
import { createCard, settledCard } from '../support/cards.ts';
import { balanceOf, fundedPartner } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';

describe('an external_ref', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    partner = await fundedPartner(stack, 100_000);
  });

  const create = (amount: number, mode: 'test' | 'live' = 'test', by = partner) =>
    createCard(by, { amount, external_ref: 'r' }, { mode });

  it('gets 409 if another card has it, be it pending, and nothing is debited', async () => {
    assert.equal((await create(1_000)).status, 201);
    for (const amount of [1_000, 2_000]) {
      const taken = await create(amount);
      expectError(taken, 'external_ref_taken');
      assert.match(taken.json.error.message, /look at GET \/cards\?external_ref=… first/);
    }
    assert.deepEqual(await balanceOf(partner), [98_850, 0, 98_850]);
    assert.equal((await create(1_047, 'live')).status, 202);
    expectError(await create(1_000, 'live'), 'external_ref_taken');
  });

  it('is unique within an account and mode', async () => {
    const other = await fundedPartner(stack, 100_000);
    for (const mode of ['test', 'live'] as const) {
      assert.equal((await create(1_000, mode)).status, 201);
      assert.equal((await create(1_000, mode, other)).status, 201);
    }
  });

  it('is free again after its request was refused or its card has failed, and finds both cards', async () => {
    expectError(await create(1_042, 'live'), 'provider_declined');
    expectError(await create(900_000, 'live'), 'insufficient_funds');
    const accepted = await create(1_043, 'live');
    assert.equal(accepted.status, 202);
    assert.equal((await settledCard(partner, accepted.json.id)).status, 'failed');
    const again = await create(1_000, 'live');
    assert.equal(again.status, 201, again.text);
    const found = await partner.call('GET', '/cards?external_ref=r', { mode: 'live' });
    assert.deepEqual(
      found.json.data.map((card: { id: string; status: string }) => [card.id, card.status]),
      [
        [again.json.id, 'active'],
        [accepted.json.id, 'failed'],
      ],
    );
  });

  it('is compared character by character', async () => {
    for (const external_ref of ['R', 'r ', ' r', 'é', 'e\u0301', 'x'.repeat(255), `${'x'.repeat(254)}y`]) {
      const answer = await createCard(partner, { amount: 100, external_ref });
      assert.equal(answer.status, 201, answer.text);
      assert.equal(answer.json.external_ref, external_ref);
    }
  });
});
