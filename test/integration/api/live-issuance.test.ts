import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { checkLedger } from '../../../ledger/check-ledger.ts';
import { expectError } from '../../support/api/answers.ts';
import { createCard, settledCard } from '../../support/cards.ts';
import { balanceOf, fundedPartner } from '../../support/money.ts';
import { asOwner } from '../../support/postgres.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';

const FUNDS = 100_000;
const CARDHOLDER = {
  ...{ card_name: 'Ads', cardholder_first_name: 'Ada', cardholder_last_name: 'Lovelace' },
  email: 'ada@example.com',
  external_ref: 'r',
  metadata: { team: 'marketing' },
};

describe('POST /cards in live mode', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    partner = await fundedPartner(stack, FUNDS);
  });

  const create = (amount: number) => createCard(partner, { ...CARDHOLDER, amount }, { mode: 'live' });
  const debitedFor = (amount: number) => amount + 100 + Math.max(50, Math.round(amount * 0.02));
  const events = () =>
    asOwner<{ id: string; type: string; body: string; mode: string }>(
      stack,
      'SELECT id, type, body, mode FROM event WHERE partner_id = $1 ORDER BY id',
      [partner.id],
    );
  /** Asserts that there is one event, whose body is the envelope with the current card. */
  const expectOneEvent = async (type: string, card: unknown) => {
    const written = await events();
    assert.deepEqual(
      written.map((event) => event.type),
      [type],
    );
    const [{ id, body } = { id: '', body: '' }] = written;
    const { created, ...envelope } = JSON.parse(body);
    assert.match(id, /^evt_[0-9a-z]{26}$/);
    assert.equal(new Date(created).toISOString(), created);
    assert.deepEqual(envelope, { id, type, mode: 'live', data: { card } });
  };
  // biome-ignore lint/suspicious/noExplicitAny: a card as the API gives it.
  const expectActive = async (card: any, amount: number) => {
    assert.match(card.last4, /^\d{4}$/);
    const { id, created, last4, exp_month, exp_year, ...rest } = card;
    assert.ok(exp_month >= 1 && exp_month <= 12 && exp_year > new Date(created).getUTCFullYear());
    assert.deepEqual(rest, {
      ...{
        object: 'card',
        status: 'active',
        balance: amount,
        available_balance: amount,
        currency: 'USD',
        ...CARDHOLDER,
      },
      ...{
        product_code: 'TEST-USD',
        network: 'visa',
        mode: 'live',
        failure_code: null,
        spending_controls: null,
      },
    });
    const left = FUNDS - debitedFor(amount);
    assert.deepEqual(await balanceOf(partner, 'live'), [left, 0, left]);
    await expectOneEvent('card.issued', card);
  };

  for (const [amount, what] of [
    [1_000, 'an amount with any other ending'],
    [5_044, 'an amount ending in 44, whose answer is lost and whose card is found by asking again'],
    [5_048, 'an amount ending in 48, which succeeds after three 503s'],
  ] as const) {
    it(`answers 201 for ${what}`, async () => {
      const answer = await create(amount);
      assert.equal(answer.status, 201, answer.text);
      await expectActive(answer.json, amount);
      const { json } = await partner.call('GET', `/cards/${answer.json.id}`, { mode: 'live' });
      assert.deepEqual(json, answer.json);
    });
  }

  for (const [amount, what] of [
    [5_041, 'an amount ending in 41, which the network completes about 2 s later'],
    [5_045, 'an amount ending in 45, whose callback never comes and whose outcome polling finds'],
  ] as const) {
    it(`answers 202 for ${what}, and the card becomes active`, async () => {
      const answer = await create(amount);
      assert.equal(answer.status, 202, answer.text);
      const { json: pending } = answer;
      assert.deepEqual(
        [pending.status, pending.balance, pending.last4, pending.exp_month, pending.exp_year],
        ['funding_pending', 0, null, null, null],
      );
      const debited = debitedFor(amount);
      assert.deepEqual(await balanceOf(partner, 'live'), [FUNDS - debited, debited, FUNDS]);
      assert.deepEqual(await events(), []);
      const card = await settledCard(partner, pending.id);
      assert.deepEqual([card.id, card.created], [pending.id, pending.created]);
      await expectActive(card, amount);
    });
  }

  it('answers 202 for an amount ending in 46, whose callback comes twice, and the card becomes active once', async () => {
    const { status, json } = await create(5_046);
    assert.equal(status, 202);
    const card = await settledCard(partner, json.id);
    const callbacks = () =>
      asOwner(stack, 'SELECT FROM simulated_network.callback WHERE token = $1', [json.id]);
    while ((await callbacks()).length > 0) await sleep(50);
    await expectActive(card, 5_046);
  });

  it('answers 402 provider_declined for an amount ending in 42, with no card, event or hold', async () => {
    expectError(await create(5_042), 'provider_declined');
    assert.deepEqual(await balanceOf(partner, 'live'), [FUNDS, 0, FUNDS]);
    assert.deepEqual((await partner.call('GET', '/cards', { mode: 'live' })).json.data, []);
    assert.deepEqual(await asOwner(stack, 'SELECT FROM card WHERE partner_id = $1', [partner.id]), []);
    assert.deepEqual(await events(), []);
    assert.equal((await create(5_000)).status, 201, 'its external_ref is free');
  });

  it('answers 202 for an amount ending in 43, and the card fails and releases every held cent and its external_ref', async () => {
    const answer = await create(5_043);
    assert.equal(answer.status, 202, answer.text);
    const card = await settledCard(partner, answer.json.id);
    assert.deepEqual(card, { ...answer.json, status: 'failed', failure_code: 'issuance_failed' });
    assert.equal(card.balance, 0);
    assert.deepEqual(await balanceOf(partner, 'live'), [FUNDS, 0, FUNDS]);
    await expectOneEvent('card.issue_failed', card);
    const again = await create(5_000);
    assert.equal(again.status, 201, again.text);
    assert.notEqual(again.json.id, card.id);
  });

  it('answers 202 for an amount ending in 47, which stays pending with its money held', async () => {
    const answer = await create(5_047);
    assert.equal(answer.status, 202, answer.text);
    const { json } = await partner.call('GET', '/cards?status=funding_pending', { mode: 'live' });
    assert.deepEqual(json.data, [answer.json]);
    const debited = debitedFor(5_047);
    assert.deepEqual(await balanceOf(partner, 'live'), [FUNDS - debited, debited, FUNDS]);
    assert.deepEqual(await events(), []);
  });

  it('ignores these digits in test mode', async () => {
    for (let digits = 41; digits <= 48; digits++) {
      const answer = await createCard(partner, { amount: 500 + digits });
      assert.equal(answer.status, 201, answer.text);
      assert.equal(answer.json.status, 'active');
    }
  });

  it('leaves a ledger that adds up', async () => {
    assert.deepEqual(await checkLedger(stack.orm.em.fork()), []);
  });
});
