import assert from 'node:assert/strict';
import { adjustBalance } from '../../accounts/adjust-balance.ts';
import type { BalanceTransactionResource } from '../../accounts/resource.ts';
import type { Mode } from '../../domain/mode.ts';
import { assertAddsUp } from '../support/api/balance-changes.ts';
import { networkIdOf, networkTransaction, sendAsNetwork } from '../support/api/network-events.ts';
import { post } from '../support/api/post.ts';
import { createCard, settledCard } from '../support/cards.ts';
import { balanceOf } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';

describe('GET /balance/transactions', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    partner = await stack.createPartner();
  });

  const all = async (mode: Mode): Promise<BalanceTransactionResource[]> =>
    (await partner.call('GET', '/balance/transactions?limit=100', { mode })).json.data;
  const adjust = (amountCents: number, mode: Mode = 'test') =>
    adjustBalance(stack.operator, { partnerId: partner.id, mode, amountCents, reason: 'a test', key: null });

  it('lists every change with its source in test mode', async () => {
    await post(partner, '/test/credit', { amount: 100_000 });
    const card = (await post(partner, '/cards', { amount: 5_000, external_ref: 'r' })).id;
    const topup = (await post(partner, `/cards/${card}/topups`, { amount: 2_000 })).id;
    const path = `/test/cards/${card}/simulate-transaction`;
    const purchase = (await post(partner, path, { type: 'purchase', amount: 1_000 })).id;
    const decline = (await post(partner, path, { type: 'decline', amount: 1_000 })).id;
    await post(partner, path, { type: 'refund', amount: 100 });
    await post(partner, `/cards/${card}/block`);
    const { adjustmentId } = await adjust(-500);

    const items = await all('test');
    await assertAddsUp(partner, items, 'test');
    const credit = items.at(-1)?.source.id ?? '';
    assert.match(credit, /^credit_/);
    const changes = items.map(({ type, amount, source }) => [type, amount, source.type, source.id]);
    assert.deepEqual(changes.reverse(), [
      ['faucet_credit', 100_000, 'faucet_credit', credit],
      ['card_issue', -5_000, 'card', card],
      ['card_activation_fee', -100, 'card', card],
      ['card_funding_fee', -100, 'card', card],
      ['card_topup', -2_000, 'topup', topup],
      ['card_funding_fee', -50, 'topup', topup],
      ['transaction_fee', -15, 'transaction', purchase],
      ['decline_fee', -25, 'transaction', decline],
      ['card_release', 6_100, 'card', card],
      ['adjustment', -500, 'adjustment', adjustmentId],
    ]);
    assert.deepEqual(await all('live'), []);
  });

  it('lists what holds became, and not the holds, and what came after a block, in live mode', async () => {
    await adjust(10_000, 'live');
    const pending = await createCard(partner, { amount: 1_047 }, { mode: 'live' });
    const failing = await createCard(partner, { amount: 1_043 }, { mode: 'live' });
    assert.equal((await all('live')).length, 1, 'money on hold is no change');
    assert.equal((await settledCard(partner, failing.json.id)).status, 'failed');
    const issued = (await createCard(partner, { amount: 1_000 }, { mode: 'live' })).json.id;
    await post(partner, `/cards/${issued}/block`, undefined, 'live');
    const card = await networkIdOf(stack, issued);
    const told: string[] = [];
    for (const [type, amountCents] of [
      ['purchase', 20_000],
      ['refund', 300],
    ]) {
      const body = JSON.stringify(networkTransaction(card, { type, amountCents }));
      told.push((await sendAsNetwork(stack, '/network/transactions', body)).json.transactionId);
    }
    const items = await all('live');
    await assertAddsUp(partner, items, 'live');
    const [, ...changes] = items.map(({ type, amount, source }) => [type, amount, source.id]).reverse();
    assert.deepEqual(changes, [
      ['card_issue', -1_000, issued],
      ['card_activation_fee', -100, issued],
      ['card_funding_fee', -50, issued],
      ['card_release', 1_000, issued],
      ['late_debit', -20_000, told[0]],
      ['transaction_fee', -110, told[0]],
      ['late_refund', 300, told[1]],
    ]);
    const [available, held = 0, total = 0] = await balanceOf(partner, 'live');
    assert.ok(held > 0 && pending.status === 202);
    assert.equal(available, total - held);
  });
});
