import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { TransactionResource } from '../../payments/transaction-resource.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { expectError } from '../support/api/answers.ts';
import { createCard } from '../support/cards.ts';
import { balanceOf, fundedPartner } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { CallOptions, TestPartner, TestStack } from '../support/stack.ts';

describe('POST /test/cards/{cardId}/simulate-transaction', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let cardId: string;
  before(async () => {
    stack = await sharedStack();
    partner = await fundedPartner(stack, 100_000);
  });
  beforeEach(async () => {
    cardId = (await createCard(partner, { amount: 1_000 })).json.id;
  });

  const simulate = (body: object, options: CallOptions = {}, id = cardId) =>
    partner.call('POST', `/test/cards/${id}/simulate-transaction`, { body, ...options });
  const purchase = { type: 'purchase', amount: 300 };
  const list = async () => (await partner.call('GET', `/cards/${cardId}/transactions`)).json.data;
  const total = async () => (await balanceOf(partner))[2] ?? Number.NaN;
  const onCard = async () => (await partner.call('GET', `/cards/${cardId}`)).json.balance;

  it('answers 201 with a settled purchase, charged to the card, and its fee to the balance', async () => {
    const before = await total();
    const merchant = { merchant_name: 'Bücher & Co', merchant_category_code: '5942' };
    const { status, json } = await simulate({ ...purchase, ...merchant });
    assert.equal(status, 201);
    assert.deepEqual(json, {
      ...{ id: json.id, object: 'transaction', card_id: cardId, type: 'purchase', status: 'settled' },
      ...{ amount: 300, currency: 'USD', fees: [{ type: 'transaction', amount: 12 }] },
      merchant: { name: 'Bücher & Co', category_code: '5942', city: null, country: null },
      ...{ decline_reason: null, charged_to: 'card', card_balance_after: 700, mode: 'test' },
      card_amount: 300,
      partner_balance_amount: 0,
      authorization_id: null,
      refunded_transaction_id: null,
      created: json.created,
    });
    assert.deepEqual(TransactionResource.parse(json), json);
    assert.deepEqual([await onCard(), await total()], [700, before - 12]);
    assert.deepEqual(await list(), [json]);
  });

  it("records a decline, also for a purchase above the card's balance", async () => {
    const before = await total();
    const asked = (await simulate({ type: 'decline', amount: 5_000 })).json;
    const dear = (await simulate({ type: 'purchase', amount: 1_001 })).json;
    for (const [json, reason] of [
      [asked, 'simulated_decline'],
      [dear, 'insufficient_card_balance'],
    ]) {
      assert.deepEqual([json.type, json.status, json.decline_reason], ['decline', 'declined', reason]);
      assert.equal(json.charged_to, null);
      assert.deepEqual([json.fees, json.card_balance_after], [[{ type: 'decline', amount: 25 }], 1_000]);
    }
    assert.deepEqual([await onCard(), await total()], [1_000, before - 50]);
    assert.deepEqual(await list(), [dear, asked]);
  });

  it('refunds to the card, without a fee', async () => {
    const before = await total();
    const { status, json } = await simulate({ type: 'refund', amount: 250 });
    assert.deepEqual([status, json.type, json.fees, json.card_balance_after], [201, 'refund', [], 1_250]);
    assert.deepEqual([await onCard(), await total()], [1_250, before]);
  });

  describe('with the id of a purchase', () => {
    const refund = (transactionId: string, amount: number, more: object = {}, options: CallOptions = {}) =>
      simulate({ type: 'refund', amount, transaction_id: transactionId, ...more }, options);

    it('refunds all or a part of it, where it was made, and says so', async () => {
      const bought = (await simulate({ ...purchase, merchant_name: 'Café', merchant_category_code: '5812' }))
        .json;
      const { status, json } = await refund(bought.id, 100);
      assert.deepEqual(
        [status, json.refunded_transaction_id, json.merchant],
        [201, bought.id, bought.merchant],
      );
      assert.equal(bought.refunded_transaction_id, null);
      const keyed = { idempotencyKey: randomUUID() };
      const { json: elsewhere } = await refund(bought.id, 150, { merchant_name: 'Head office' }, keyed);
      const { refunded_transaction_id, merchant } = elsewhere;
      assert.deepEqual(
        [refunded_transaction_id, merchant.name, merchant.category_code],
        [bought.id, 'Head office', null],
      );
      assert.equal((await refund(bought.id, 50)).status, 201);
      assert.equal(await onCard(), 1_000);
      assert.deepEqual(
        (await list()).map((one: { refunded_transaction_id: string | null }) => one.refunded_transaction_id),
        [bought.id, bought.id, bought.id, null],
      );
    });

    it('answers 400 for more than is left of it, and once nothing is left, however many come at once', async () => {
      const { id } = (await simulate(purchase)).json;
      const dear = await refund(id, 301);
      expectError(dear, 'validation_failed', ['amount']);
      assert.match(dear.text, /300 cents of the purchase that are left/);
      const answers = await Promise.all(Array.from({ length: 6 }, () => refund(id, 100)));
      assert.equal(answers.filter(({ status }) => status === 201).length, 3);
      for (const keyed of [{}, { idempotencyKey: randomUUID() }]) {
        const again = await refund(id, 1, {}, keyed);
        expectError(again, 'validation_failed', ['transaction_id']);
        assert.match(again.text, /already refunded in full/);
      }
      assert.equal(await onCard(), 1_000);
    });

    it('answers 400 for what is no purchase of the card, and unless it is a refund', async () => {
      const other = (await createCard(partner, { amount: 1_000 })).json.id;
      const { id: ofOther } = (await simulate(purchase, {}, other)).json;
      const { id: declined } = (await simulate({ type: 'decline', amount: 10 })).json;
      const { id: refunded } = (await simulate({ type: 'refund', amount: 10 })).json;
      const stranger = await fundedPartner(stack, 10_000);
      const strangers = (await createCard(stranger, { amount: 1_000 })).json.id;
      const { json: theirs } = await stranger.call('POST', `/test/cards/${strangers}/simulate-transaction`, {
        body: purchase,
      });
      for (const id of [ofOther, declined, refunded, theirs.id, newId('txn'), 'txn_1'])
        expectError(await refund(id, 10), 'validation_failed', ['transaction_id']);
      const { id } = (await simulate(purchase)).json;
      for (const type of ['purchase', 'decline'])
        expectError(await simulate({ ...purchase, type, transaction_id: id }), 'validation_failed', [
          'transaction_id',
        ]);
    });
  });

  it('settles exactly as many of 60 simultaneous purchases as the card can pay for', async () => {
    const answers = await Promise.all(
      Array.from({ length: 60 }, () => simulate({ type: 'purchase', amount: 30 })),
    );
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([201]));
    assert.equal(answers.filter(({ json }) => json.type === 'purchase').length, 33);
    assert.equal(await onCard(), 10);
  });

  it('answers 409 and names the status unless the card is active', async () => {
    for (const [change, status] of [
      ['freeze', 'frozen'],
      ['block', 'blocked'],
    ] as const) {
      assert.equal((await partner.call('POST', `/cards/${cardId}/${change}`)).status, 200);
      for (const type of ['purchase', 'decline', 'refund']) {
        const answer = await simulate({ type, amount: 1 });
        expectError(answer, 'invalid_state');
        assert.match(answer.json.error.message, new RegExp(status));
      }
    }
    assert.deepEqual(await list(), []);
  });

  describe('with force, as the card network would settle it,', () => {
    it('declines a purchase on a frozen card, and returns a refund to it', async () => {
      assert.equal((await partner.call('POST', `/cards/${cardId}/freeze`)).status, 200);
      const before = await total();
      const { status, json } = await simulate({ ...purchase, force: true });
      assert.deepEqual([status, json.type, json.decline_reason], [201, 'decline', 'card_frozen']);
      assert.equal((await simulate({ type: 'refund', amount: 200, force: true })).status, 201);
      assert.deepEqual([await onCard(), await total()], [1_200, before - 25]);
    });

    it('changes nothing on an active card, except that a decline is the network’s', async () => {
      assert.equal((await simulate({ ...purchase, force: true })).json.card_balance_after, 700);
      const { json } = await simulate({ type: 'decline', amount: 1, force: true });
      assert.equal(json.decline_reason, 'declined_by_network');
      const forcedNot = await simulate({ type: 'decline', amount: 1, force: false });
      assert.equal(forcedNot.json.decline_reason, 'simulated_decline');
    });
  });

  it("accepts refunds and forced purchases up to the faucet's largest amount", async () => {
    for (const amount of [10_000_001, Number.MAX_SAFE_INTEGER]) {
      for (const body of [{ type: 'refund' }, { type: 'purchase', force: true }])
        expectError(await simulate({ ...body, amount }), 'validation_failed', ['amount']);
    }
    assert.deepEqual(await list(), []);
    const { status, json } = await simulate({ type: 'refund', amount: 10_000_000 });
    assert.deepEqual([status, json.amount], [201, 10_000_000]);
    assert.equal(
      (await simulate({ type: 'purchase', amount: Number.MAX_SAFE_INTEGER })).json.type,
      'decline',
    );
  });
});
