import assert from 'node:assert/strict';
import { expectError, expectReplay } from '../../support/api/answers.ts';
import { balanceOf } from '../../support/money.ts';
import { startTestStack, type TestStack } from '../../support/stack.ts';
import {
  type Cardholder,
  cardholder,
  readCard,
  settledTopUp,
  topUp,
  topUpEvents,
} from '../../support/top-ups.ts';

const FUNDS = 10_000;

describe('POST /cards/{cardId}/topups, if no worker gets to it in time,', () => {
  let stack: TestStack;
  let test: Cardholder;
  let live: Cardholder;
  before(async () => {
    stack = await startTestStack({ cardCreationWaitMs: 2_000 }, { hosted: false });
    test = await cardholder(stack, 'test', FUNDS);
    live = await cardholder(stack, 'live', FUNDS);
    await stack.stopWorker();
  });
  after(() => stack.stop());

  it('answers 201 in test mode, which needs no worker', async () => {
    const { status, json } = await topUp(test, 1_000);
    assert.deepEqual([status, json.status, json.card_balance], [201, 'succeeded', 2_000]);
  });

  it('still answers refusals', async () => {
    for (const holder of [test, live]) {
      expectError(await topUp(holder, 10_000), 'insufficient_funds');
      expectError(await topUp(holder, 99), 'limit_exceeded');
    }
    assert.deepEqual(await balanceOf(live.partner, 'live'), [FUNDS, 0, FUNDS]);
  });

  it('answers 202 in live mode with the money held, and the top-up succeeds when a worker starts', async () => {
    const answer = await topUp(live, 1_000, { idempotencyKey: 'k' });
    assert.equal(answer.status, 202, answer.text);
    assert.deepEqual([answer.json.status, answer.json.card_balance], ['pending', 1_000]);
    assert.deepEqual(await balanceOf(live.partner, 'live'), [FUNDS - 1_050, 1_050, FUNDS]);
    assert.deepEqual(await topUpEvents(stack, live), []);
    expectReplay(await topUp(live, 1_000, { idempotencyKey: 'k' }), answer);

    await stack.startWorker();
    const now = await settledTopUp(live, answer.json.id);
    assert.deepEqual([now.status, now.card_balance], ['succeeded', 2_000]);
    assert.deepEqual(await balanceOf(live.partner, 'live'), [FUNDS - 1_050, 0, FUNDS - 1_050]);
    assert.equal((await readCard(live)).balance, 2_000);
    assert.equal((await topUpEvents(stack, live)).length, 1);
    expectReplay(await topUp(live, 1_000, { idempotencyKey: 'k' }), answer);
  });
});
