import assert from 'node:assert/strict';
import { expectError, expectReplay } from '../../support/api/answers.ts';
import { balanceOf } from '../../support/money.ts';
import { startTestStack, type TestStack } from '../../support/stack.ts';
import { type Cardholder, cardholder, readCard } from '../../support/top-ups.ts';
import { settledWithdrawal, withdraw, withdrawalEvents } from '../../support/withdrawals.ts';

const FUNDS = 10_000;

describe('POST /cards/{cardId}/withdrawals, if no worker gets to it in time,', () => {
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
    const { status, json } = await withdraw(test, 400);
    assert.deepEqual([status, json.status, json.card_balance], [201, 'succeeded', 600]);
  });

  it('still answers refusals', async () => {
    for (const holder of [test, live]) {
      expectError(await withdraw(holder, 1_001), 'insufficient_card_balance');
    }
    assert.deepEqual(await balanceOf(live.partner, 'live'), [FUNDS, 0, FUNDS]);
  });

  it('answers 202 in live mode with the money held, and it succeeds when a worker starts', async () => {
    const answer = await withdraw(live, 400, { idempotencyKey: 'k' });
    assert.equal(answer.status, 202, answer.text);
    assert.deepEqual([answer.json.status, answer.json.card_balance], ['pending', 1_000]);
    const { balance, available_balance } = await readCard(live);
    assert.deepEqual([balance, available_balance], [1_000, 600]);
    assert.deepEqual(await withdrawalEvents(stack, live), []);
    expectReplay(await withdraw(live, 400, { idempotencyKey: 'k' }), answer);

    await stack.startWorker();
    const now = await settledWithdrawal(live, answer.json.id);
    assert.deepEqual([now.status, now.card_balance], ['succeeded', 600]);
    assert.deepEqual(await balanceOf(live.partner, 'live'), [FUNDS + 400, 0, FUNDS + 400]);
    assert.equal((await withdrawalEvents(stack, live)).length, 1);
    expectReplay(await withdraw(live, 400, { idempotencyKey: 'k' }), answer);
  });
});
