import assert from 'node:assert/strict';
import type { AccountLimits } from '../../../accounts/limits-rules.ts';
import { negotiateLimits } from '../../../accounts/partners.ts';
import { expectError } from '../../support/api/answers.ts';
import { createCard } from '../../support/cards.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { Answer, TestStack } from '../../support/stack.ts';
import { type Cardholder, cardholder, settledTopUp, transfer } from '../../support/transfers.ts';

describe('the limits of top-ups', () => {
  let stack: TestStack;
  let test: Cardholder;
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    test = await cardholder(stack, 'test', 10_000_000);
  });

  const limit = (holder: Cardholder, changes: Partial<AccountLimits>) =>
    negotiateLimits(stack.operator, holder.partner.id, changes);
  const refused = (answer: Answer, message: RegExp) => {
    expectError(answer, 'limit_exceeded');
    assert.match(answer.json.error.message, message);
  };

  it('allow 100 to 1,000,000 cents each by default, including both', async () => {
    refused(await transfer('topup', test, 99), /amount must be at least 100 cents/);
    refused(await transfer('topup', test, 1_000_001), /amount must be at most 1000000 cents/);
    assert.equal((await transfer('topup', test, 100)).status, 201);
    assert.equal((await transfer('topup', test, 1_000_000)).status, 201);
  });

  it('can be set for each account', async () => {
    await limit(test, { minCardCents: 7, maxCardCents: 9 });
    refused(await transfer('topup', test, 6), /must be at least 7 cents/);
    refused(await transfer('topup', test, 10), /must be at most 9 cents/);
    for (const amount of [7, 9]) assert.equal((await transfer('topup', test, amount)).status, 201);
  });

  it('do not count a top-up as an open card', async () => {
    await limit(test, { maxOpenCards: 1 });
    assert.equal((await transfer('topup', test, 1_000)).status, 201);
    refused(await createCard(test.partner, { amount: 1_000 }), /can have 1 open cards and already has 1/);
  });

  it('count the cents of cards and top-ups of a UTC day together, up to the last one', async () => {
    await limit(test, { maxIssuedPerDayCents: 5_000 });
    assert.equal((await transfer('topup', test, 2_000)).status, 201);
    refused(
      await transfer('topup', test, 2_001),
      /can load 5000 cents per UTC day and has loaded 3000 today/,
    );
    assert.equal((await createCard(test.partner, { amount: 1_000 })).status, 201);
    assert.equal((await transfer('topup', test, 1_000)).status, 201);
    refused(await createCard(test.partner, { amount: 100 }), /has loaded 5000/);
  });

  it('count a pending top-up, and not one that has failed or was refused', async () => {
    const live = await cardholder(stack, 'live', 10_000_000);
    await limit(live, { maxIssuedPerDayCents: 3_000 });
    const failing = await transfer('topup', live, 1_943);
    assert.equal(failing.status, 202);
    refused(await transfer('topup', live, 100), /has loaded 2943/);
    assert.equal((await settledTopUp(live, failing.json.id)).status, 'failed');
    expectError(await transfer('topup', live, 1_942), 'provider_declined');
    assert.equal((await transfer('topup', live, 2_000)).status, 201);
    refused(await transfer('topup', live, 100), /has loaded 3000/);
  });

  it('count the completed top-ups of a blocked card, and not the pending ones', async () => {
    const live = await cardholder(stack, 'live', 10_000_000);
    assert.equal((await transfer('topup', live, 1_000)).status, 201);
    assert.equal((await transfer('topup', live, 1_047)).status, 202);
    const blocked = await live.partner.call('POST', `/cards/${live.cardId}/block`, { mode: 'live' });
    assert.equal(blocked.status, 200, blocked.text);
    await limit(live, { maxIssuedPerDayCents: 2_500 });
    refused(await createCard(live.partner, { amount: 501 }, { mode: 'live' }), /has loaded 2000/);
  });

  it('hold for simultaneous requests', async () => {
    await limit(test, { maxIssuedPerDayCents: 4_000 });
    const answers = await Promise.all(Array.from({ length: 20 }, () => transfer('topup', test, 1_000)));
    assert.equal(answers.filter((answer) => answer.status === 201).length, 3);
    assert.equal(answers.filter((answer) => answer.status === 422).length, 17);
  });
});
