import assert from 'node:assert/strict';
import type { AccountLimits } from '../../accounts/limits-rules.ts';
import { negotiateLimits } from '../../accounts/partners.ts';
import { expectError } from '../support/api/answers.ts';
import { createCard, settledCard } from '../support/cards.ts';
import { balanceOf, fundedPartner } from '../support/money.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';

describe('the limits of issuances', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    partner = await fundedPartner(stack, 10_000_000);
  });

  const limit = (changes: Partial<AccountLimits>) => negotiateLimits(stack.operator, partner.id, changes);
  const create = (amount: number, mode: 'test' | 'live' = 'test') =>
    createCard(partner, { amount }, { mode });
  const refused = async (answer: ReturnType<typeof create>, message: RegExp) => {
    expectError(await answer, 'limit_exceeded');
    assert.match((await answer).json.error.message, message);
  };

  it('can be set for each account, and include both ends', async () => {
    await limit({ minCardCents: 7, maxCardCents: 9 });
    await refused(create(6), /amount must be at least 7 cents/);
    await refused(create(10), /amount must be at most 9 cents/);
    for (const amount of [7, 9]) assert.equal((await create(amount)).status, 201);
  });

  it('are checked before the balance, and leave nothing of a refused request but its response', async () => {
    const poor = await stack.createPartner();
    expectError(await createCard(poor, { amount: 99 }), 'limit_exceeded');
    expectError(await createCard(poor, { amount: 100 }), 'insufficient_funds');
    await refused(create(99), /must be at least 100 cents/);
    assert.deepEqual(await balanceOf(partner), [10_000_000, 0, 10_000_000]);
    for (const path of ['/cards', '/events'])
      assert.deepEqual((await partner.call('GET', path)).json.data, []);
  });

  it('count open cards, which are pending or active, in each mode separately', async () => {
    await limit({ maxOpenCards: 2 });
    assert.equal((await create(1_047, 'live')).status, 202);
    assert.equal((await create(1_000, 'live')).status, 201);
    await refused(create(1_000, 'live'), /can have 2 open cards and already has 2/);
    for (let i = 0; i < 2; i++) assert.equal((await create(1_000)).status, 201);
    await refused(create(1_000), /2 open cards/);
  });

  it('do not count a card that has failed or was refused', async () => {
    await limit({ maxOpenCards: 1, maxIssuedPerDayCents: 1_999 });
    const failing = await create(1_043, 'live');
    assert.equal(failing.status, 202);
    await refused(create(100, 'live'), /1 open cards/);
    assert.equal((await settledCard(partner, failing.json.id)).status, 'failed');
    expectError(await create(1_042, 'live'), 'provider_declined');
    assert.equal((await create(1_999, 'live')).status, 201);
  });

  it('count the cents of each UTC day in each mode, up to the last one, and start again with the next', async () => {
    await limit({ maxIssuedPerDayCents: 5_000 });
    assert.equal((await create(2_000)).status, 201);
    await refused(create(3_001), /can load 5000 cents per UTC day and has loaded 2000 today/);
    assert.equal((await create(3_000)).status, 201);
    await refused(create(100), /has loaded 5000/);
    assert.equal((await create(5_000, 'live')).status, 201);
    await asOwner(stack, 'UPDATE account_usage SET loaded_on = loaded_on - 1 WHERE partner_id = $1', [
      partner.id,
    ]);
    assert.equal((await create(5_000)).status, 201);
    await refused(create(100), /has loaded 5000/);
  });

  it('hold for simultaneous requests', async () => {
    await limit({ maxOpenCards: 5, maxIssuedPerDayCents: 3_000 });
    const answers = await Promise.all(Array.from({ length: 20 }, () => create(1_000)));
    const count = (wanted: number) => answers.filter(({ status }) => status === wanted).length;
    assert.deepEqual([count(201), count(422)], [3, 17]);
  });
});
