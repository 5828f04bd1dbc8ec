import assert from 'node:assert/strict';
import type { Increase } from 'increase';
import { TRANSFER_DIRECTIONS, TRANSFERS } from '../../../../domain/transfer.ts';
import type { NetworkMessage } from '../../../../issuers/card-network.ts';
import { newId } from '../../../../platform/crypto/new-id.ts';
import { orderCard, startIncreaseClient, toArray } from '../../../support/adapters/increase.ts';
import { readable } from '../../../support/adapters/readable.ts';
import { column } from '../../../support/column.ts';

const MERCHANT = { name: 'AMAZON.COM', categoryCode: '5734', city: 'New York', country: 'US' };
const NO_MERCHANT = { name: null, categoryCode: null, city: null, country: null };

/** What a report says, without the fields that a report has in any case. */
function said(message: NetworkMessage): Record<string, unknown> {
  assert.ok(message.type === 'transaction');
  const { whole, unreadable } = message.transaction;
  if (whole === null) return { notUnderstood: message.transaction.networkTransactionId, unreadable };
  assert.deepEqual(JSON.parse(Buffer.from(message.body).toString()).networkCardId, whole.networkCardId);
  const { networkCardId: _card, networkPaymentId, currency: _usd, merchant, ...rest } = whole;
  assert.match(networkPaymentId ?? '', /^sandbox_card_payment_/);
  const isDefault = (name: string, value: unknown) =>
    (name === 'final' && value === true && rest.type !== 'clearing') ||
    (value === null && name !== 'networkAuthorizationId' && name !== 'amountCents');
  const told = Object.entries(rest).filter(([name, value]) => !isDefault(name, value));
  return { ...Object.fromEntries(told), merchant };
}

describe('what a card payment of Increase says', () => {
  let increase: Awaited<ReturnType<typeof startIncreaseClient>>;
  let cardId: string;
  before(async () => {
    increase = await startIncreaseClient();
    const answer = await increase.client.issueCard(orderCard(100_000));
    assert.ok(answer.status === 'issued');
    cardId = answer.networkCardId;
  });
  after(() => increase.stop());
  afterEach(() => {
    increase.fake.simulations.askForDecision = () => false;
    increase.fake.simulations.declinesAfterAsking = null;
  });

  const event = (payment: { id: string }, category = 'card_payment.updated') =>
    Buffer.from(
      JSON.stringify({
        id: 'event_1',
        category,
        associated_object_id: payment.id,
        associated_object_type: 'card_payment',
      }),
    );
  const read = async (payment: Increase.CardPayment) =>
    (await increase.client.readEvent(event(payment))).map(said);
  const newest = () => increase.fake.bank.books.payments.at(-1) as Increase.CardPayment;

  /** An authorization, and its payment, which the issuer asked us about and we approved. */
  async function approved(amount: number): Promise<Increase.CardPayment> {
    const { bank, simulations } = increase.fake;
    simulations.askForDecision = ({ id }) => {
      bank.answer(id, { card_authorization: { decision: 'approve' } });
      return true;
    };
    await simulations.authorize({ amount, card_id: cardId });
    return newest();
  }
  const decisions = () => increase.fake.bank.books.decisions.map(({ id }) => id);
  const element = (payment: Increase.CardPayment, index: number) => payment.elements[index];

  it('card_authorization: an approval, under the id of the decision that we were asked for', async () => {
    const payment = await approved(1_000);
    const expiresAt = element(payment, 0)?.card_authorization?.expires_at;
    assert.deepEqual(await read(payment), [
      {
        type: 'approval',
        networkTransactionId: decisions().at(-1),
        networkAuthorizationId: payment.id,
        amountCents: 1_000,
        expiresAt,
        merchant: MERCHANT,
      },
    ]);
  });

  it('card_authorization without a decision: an approval under its own id', async () => {
    const { simulations } = increase.fake;
    await simulations.authorize({
      amount: 1_000,
      card_id: cardId,
      network_details: { visa: { stand_in_processing_reason: 'issuer_error' } },
    });
    const [message] = await read(newest());
    assert.equal(message?.networkTransactionId, element(newest(), 0)?.card_authorization?.id);
    assert.equal(message?.type, 'approval');
  });

  it('card_authorization for a refund or for nothing: nothing, and nothing about its end', async () => {
    const { simulations } = increase.fake;
    await simulations.authorize({
      amount: 1_000,
      card_id: cardId,
      processing_category: { category: 'refund' },
    });
    const refund = newest();
    simulations.reverse({ card_payment_id: refund.id, amount: 500 });
    simulations.expire({ card_payment_id: refund.id });
    assert.deepEqual(await read(refund), []);
    await simulations.authorize({ amount: 0, card_id: cardId });
    const zero = newest();
    simulations.expire({ card_payment_id: zero.id });
    assert.deepEqual(await read(zero), []);
    await simulations.increment({ card_payment_id: zero.id, amount: 300 });
    simulations.reverse({ card_payment_id: zero.id, amount: 300 });
    assert.deepEqual(column(await read(zero), 'type'), ['expiry', 'approval', 'reversal']);
  });

  it('card_increment: another approval of the same authorization', async () => {
    const payment = await approved(1_000);
    await increase.fake.simulations.increment({ card_payment_id: payment.id, amount: 200 });
    assert.deepEqual((await read(payment))[1], {
      type: 'approval',
      networkTransactionId: decisions().at(-1),
      networkAuthorizationId: payment.id,
      amountCents: 200,
      merchant: NO_MERCHANT,
    });
  });

  it("card_decline: a decline, under the decision's id also if we had approved", async () => {
    increase.fake.simulations.declinesAfterAsking = 'suspected_fraud';
    const payment = await approved(1_000);
    assert.deepEqual(await read(payment), [
      {
        type: 'decline',
        networkTransactionId: decisions().at(-1),
        networkAuthorizationId: payment.id,
        amountCents: 1_000,
        merchant: MERCHANT,
      },
    ]);
  });

  it("card_decline that nobody asked us about: a decline under the element's id", async () => {
    await increase.fake.simulations.authorize({
      amount: 900,
      card_id: cardId,
      decline_reason: 'cvv2_mismatch',
    });
    const [message] = await read(newest());
    assert.equal(message?.type, 'decline');
    assert.equal(message?.networkTransactionId, element(newest(), 0)?.card_decline?.id);
  });

  it('card_reversal and card_authorization_expiration: a reversal and an expiry', async () => {
    const payment = await approved(1_000);
    increase.fake.simulations.reverse({ card_payment_id: payment.id, amount: 400 });
    increase.fake.simulations.expire({ card_payment_id: payment.id });
    const [, reversal, expiry] = await read(payment);
    assert.deepEqual(reversal, {
      type: 'reversal',
      networkTransactionId: element(payment, 1)?.card_reversal?.id,
      networkAuthorizationId: payment.id,
      amountCents: 400,
      merchant: NO_MERCHANT,
    });
    assert.deepEqual(expiry, {
      type: 'expiry',
      networkTransactionId: element(payment, 2)?.card_authorization_expiration?.id,
      networkAuthorizationId: payment.id,
      amountCents: null,
      merchant: NO_MERCHANT,
    });
  });

  it('card_fuel_confirmation: the new total, and a reversal of everything if that is nothing', async () => {
    const payment = await approved(15_000);
    increase.fake.simulations.confirmFuel({ card_payment_id: payment.id, amount: 4_200 });
    increase.fake.simulations.confirmFuel({ card_payment_id: payment.id, amount: 0 });
    const [, total, nothing] = await read(payment);
    assert.deepEqual([total?.type, total?.amountCents], ['total', 4_200]);
    assert.deepEqual([nothing?.type, nothing?.amountCents], ['reversal', null]);
  });

  it('card_settlement: a clearing, final once nothing is pending any more', async () => {
    const payment = await approved(1_000);
    const pendingTransactionId = element(payment, 0)?.card_authorization?.pending_transaction_id ?? '';
    const settle = (amount: number, isPartial: boolean) =>
      increase.fake.simulations.settle(
        { card_id: cardId, amount, pending_transaction_id: pendingTransactionId },
        isPartial,
      );
    settle(300, true);
    const [, first] = await read(payment);
    assert.deepEqual(first, {
      type: 'clearing',
      networkTransactionId: element(payment, 1)?.card_settlement?.id,
      networkAuthorizationId: payment.id,
      amountCents: 300,
      final: false,
      merchant: MERCHANT,
    });
    settle(200, false);
    const [, again, last] = await read(payment);
    assert.deepEqual(again, first);
    assert.deepEqual([last?.amountCents, last?.final], [200, true]);
  });

  it('card_settlement without an authorization: a clearing of its own', async () => {
    increase.fake.simulations.settle({ card_id: cardId, amount: 700 });
    const [message] = await read(newest());
    assert.deepEqual([message?.networkAuthorizationId, message?.final], [null, true]);
  });

  it('card_refund: a refund', async () => {
    const settlement = increase.fake.simulations.settle({ card_id: cardId, amount: 700 });
    const payment = increase.fake.simulations.refund(settlement, 250);
    assert.deepEqual((await read(payment))[1], {
      type: 'refund',
      networkTransactionId: element(payment, 1)?.card_refund?.id,
      amountCents: 250,
      forced: true,
      merchant: MERCHANT,
    });
  });

  it('card_financial: a refund, or a clearing, of the hold that we decided on or without an authorization', async () => {
    const { simulations, bank } = increase.fake;
    const alone = await simulations.single(cardId, 350);
    const { merchant: _, ...rest } = (await read(alone))[0] ?? {};
    assert.deepEqual(rest, {
      type: 'clearing',
      networkTransactionId: element(alone, 0)?.card_financial?.id,
      networkAuthorizationId: null,
      amountCents: 350,
      final: true,
    });
    assert.equal((await read(await simulations.single(cardId, 100, { isRefund: true })))[0]?.type, 'refund');
    simulations.askForDecision = ({ id }) => {
      bank.answer(id, { card_authorization: { decision: 'approve' } });
      return true;
    };
    const asked = await simulations.single(cardId, 450, { asks: true });
    const [clearing] = await read(asked);
    assert.deepEqual(
      [clearing?.type, clearing?.networkAuthorizationId, clearing?.final],
      ['clearing', asked.id, true],
    );
  });

  it('says nothing about what moves no money, and does not understand what is new', async () => {
    const payment = await approved(100);
    for (const category of ['card_authentication', 'card_balance_inquiry', 'card_validation'] as const) {
      increase.fake.simulations.addElement(payment, { category });
    }
    increase.fake.simulations.addElement(payment, { category: 'other' });
    const messages = await read(payment);
    assert.equal(messages.length, 2);
    assert.deepEqual(messages[1]?.notUnderstood, `${payment.id}/4`);
  });

  it('does not understand an amount in another currency', async () => {
    const payment = await approved(100);
    const authorization = element(payment, 0)?.card_authorization;
    assert.ok(authorization);
    Object.assign(authorization, { currency: 'EUR' });
    const unreadable = (await read(payment))[0]?.unreadable;
    assert.ok(Array.isArray(unreadable) && unreadable.includes('currency'));
  });

  it('is the same whenever it is read, in its order', async () => {
    const payment = await approved(1_000);
    increase.fake.simulations.reverse({ card_payment_id: payment.id, amount: 400 });
    assert.deepEqual(await read(payment), await read(payment));
  });

  it('leaves out what is no text of a merchant', async () => {
    await increase.fake.simulations.authorize({
      amount: 100,
      card_id: cardId,
      merchant_descriptor: 'A\u0000B',
      merchant_city: '',
      merchant_country: ' US ',
    });
    const merchant = (await read(newest()))[0]?.merchant;
    assert.deepEqual(merchant, { name: null, categoryCode: '5734', city: null, country: 'US' });
  });

  it('is listed since a time, with everything in it', async () => {
    const listed = await toArray(readable(increase.client.listTransactions(new Date(Date.now() - 60_000))));
    const ids = listed.map(({ transaction }) => transaction.networkTransactionId);
    assert.equal(new Set(ids).size, ids.length);
    assert.ok(ids.length > 20);
  });

  it('an account transfer says that our operation has an outcome', async () => {
    const { bank } = increase.fake;
    for (const direction of TRANSFER_DIRECTIONS) {
      const token = newId(TRANSFERS[direction].idPrefix);
      await increase.client.transfer({ token, direction, networkCardId: cardId, amountCents: 100 });
      const transfer = bank.books.transfers.at(-1) as Increase.AccountTransfer;
      const messages = await increase.client.readEvent(event(transfer, 'account_transfer.updated'));
      assert.deepEqual(messages, [{ type: 'outcome', subject: direction, token }]);
    }
    const issuance = bank.books.transfers[0] as Increase.AccountTransfer;
    assert.deepEqual(await increase.client.readEvent(event(issuance, 'account_transfer.created')), [
      { type: 'outcome', subject: 'card', token: issuance.description },
    ]);
  });

  it('other events say nothing', async () => {
    assert.deepEqual(await increase.client.readEvent(event({ id: 'x' }, 'account.created')), []);
    assert.deepEqual(await increase.client.readEvent(event({ id: 'x' }, 'transaction.created')), []);
  });
});
