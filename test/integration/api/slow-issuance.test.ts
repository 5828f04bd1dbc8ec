import assert from 'node:assert/strict';
import { expectError } from '../../support/api/answers.ts';
import { createCard, settledCard } from '../../support/cards.ts';
import { balanceOf, fundedPartner } from '../../support/money.ts';
import { asOwner } from '../../support/postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';

describe('POST /cards, if no worker gets to it in time,', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await startTestStack({ cardCreationWaitMs: 200 }, { worker: false });
    partner = await fundedPartner(stack, 10_000);
  });
  after(() => stack.stop());

  const events = () =>
    asOwner<{ type: string }>(stack, 'SELECT type FROM event WHERE partner_id = $1', [partner.id]);

  it('answers 201 in test mode, which needs no worker', async () => {
    const { status, json } = await createCard(partner, { amount: 1_000 });
    assert.deepEqual([status, json.status, json.balance], [201, 'active', 1_000]);
  });

  it('still answers 402 if the money is missing', async () => {
    expectError(await createCard(partner, { amount: 10_000 }), 'insufficient_funds');
    expectError(await createCard(partner, { amount: 10_000 }, { mode: 'live' }), 'insufficient_funds');
    assert.deepEqual(await balanceOf(partner, 'live'), [10_000, 0, 10_000]);
  });

  it('answers 202 in live mode with the money held, and the card becomes active when a worker starts', async () => {
    const answer = await createCard(partner, { amount: 1_000 }, { mode: 'live' });
    assert.equal(answer.status, 202, answer.text);
    const { json: card } = answer;
    assert.deepEqual([card.status, card.balance, card.last4], ['funding_pending', 0, null]);
    assert.deepEqual(await balanceOf(partner, 'live'), [8_850, 1_150, 10_000]);
    assert.deepEqual((await partner.call('GET', `/cards/${card.id}`, { mode: 'live' })).json, card);
    assert.deepEqual(await events(), [{ type: 'card.issued' }], 'of the first test alone');

    await stack.startWorker();
    const now = await settledCard(partner, card.id);
    assert.deepEqual([now.status, now.balance], ['active', 1_000]);
    assert.deepEqual(await balanceOf(partner, 'live'), [8_850, 0, 8_850]);
    assert.equal((await events()).length, 2);
  });
});
