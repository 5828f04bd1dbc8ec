import assert from 'node:assert/strict';
import { newId } from '../../../platform/crypto/new-id.ts';
import { createCard } from '../../support/cards.ts';
import { fundedPartner } from '../../support/money.ts';
import { ACTOR, environmentOf, lastAudit, type Operate, operateIn } from '../../support/operator/operate.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';

const live = { mode: 'live' } as const;

describe('operator network-event send', () => {
  let stack: TestStack;
  let operate: Operate;
  let partner: TestPartner;
  let cardId: string;
  before(async () => {
    stack = await sharedStack();
    operate = operateIn(environmentOf(stack.config));
    partner = await fundedPartner(stack, 100_000);
  });
  beforeEach(async () => {
    cardId = (await createCard(partner, { amount: 1_000 }, live)).json.id;
  });

  const send = (flags: Record<string, string>, ...more: string[]) => {
    const all = {
      card: cardId,
      type: 'purchase',
      amount: '300',
      'network-transaction-id': newId('txn'),
      ...flags,
    };
    const args = Object.entries(all).flatMap(([name, value]) => [`--${name}`, value]);
    return operate('network-event', 'send', ...args, ...more);
  };
  const list = async () => (await partner.call('GET', `/cards/${cardId}/transactions`, live)).json.data;

  it('settles a transaction as the network would, prints it, and records the command', async () => {
    const merchant = { 'merchant-name': 'Café', 'merchant-category-code': '5812' };
    const { code, json } = await send({ 'network-transaction-id': 'net-1', ...merchant });
    assert.equal(code, 0);
    assert.deepEqual([json], await list());
    assert.deepEqual(
      [json.type, json.amount, json.card_balance_after, json.mode],
      ['purchase', 300, 700, 'live'],
    );
    assert.deepEqual([json.merchant.name, json.merchant.category_code], ['Café', '5812']);
    assert.deepEqual(await lastAudit(operate), {
      ...{ actor: ACTOR, action: 'network-event.send', subject: json.id },
      detail: { cardId, networkTransactionId: 'net-1', type: 'purchase', amountCents: 300, forced: true },
    });
    const transactions = (await operate('transaction', 'list', '--card', cardId)).json;
    assert.deepEqual(transactions, [{ ...json, network_transaction_id: 'net-1' }]);
  });

  it('returns the same transaction if it is sent again, ten times at once', async () => {
    const same = { 'network-transaction-id': newId('txn') };
    const outcomes = await Promise.all(Array.from({ length: 10 }, () => send(same)));
    assert.deepEqual(new Set(outcomes.map(({ code, out }) => `${code} ${out}`)).size, 1);
    assert.equal((await list()).length, 1);
    const { json } = await operate('audit', 'list');
    const id = outcomes[0]?.json.id;
    assert.equal(json.filter(({ subject }: { subject: string }) => subject === id).length, 1);
    const other = await send({ ...same, amount: '301' });
    assert.deepEqual([other.code, other.out], [1, '']);
    assert.match(other.err, /Nothing was settled.*settle it twice/);
  });

  it('charges a blocked card’s debits to the balance unless they are not forced', async () => {
    assert.equal((await partner.call('POST', `/cards/${cardId}/block`, live)).status, 200);
    assert.equal((await send({})).json.charged_to, 'partner_balance');
    assert.equal((await send({}, '--not-forced')).json.decline_reason, 'card_blocked');
    assert.equal((await send({ type: 'refund' })).json.charged_to, 'partner_balance');
    assert.equal((await send({ type: 'decline' })).json.decline_reason, 'declined_by_network');
  });

  it('refuses test cards, unknown cards and cards that are not issued', async () => {
    const test = (await createCard(partner, { amount: 1_000 })).json.id;
    const pending = (await createCard(partner, { amount: 1_047 }, live)).json.id;
    for (const [card, why] of [
      [test, /test card.*simulate-transaction/],
      [newId('card'), /There is no card/],
      ['sk_live_oops', /not the id of a card/],
      [pending, /funding_pending/],
    ] as const) {
      const { code, out, err } = await send({ card });
      assert.deepEqual([code, out], [1, ''], card);
      assert.match(err, why);
    }
    assert.match((await operate('transaction', 'list', '--card', newId('card'))).err, /There is no card/);
    assert.deepEqual((await operate('transaction', 'list', '--card', pending)).json, []);
  });

  it('is refused if the network is not the simulated one', async () => {
    const real = operateIn({ ...environmentOf(stack.config), CARD_NETWORK: 'none' });
    const flags = ['--type', 'purchase', '--amount', '1', '--network-transaction-id', 'x'];
    const { code, err } = await real('network-event', 'send', '--card', cardId, ...flags);
    assert.equal(code, 1);
    assert.match(err, /CARD_NETWORK is not "simulated"/);
    assert.deepEqual(await list(), []);
  });

  for (const [flag, ...values] of [
    ['type', 'capture', ''],
    ['amount', '0', '-5', '1.5', '9007199254740992', 'ten'],
    ['network-transaction-id', '', 'a b', 'é', 'x'.repeat(101)],
    ['merchant-category-code', '581', '58123', 'food'],
    ['merchant-name', '', 'x'.repeat(256)],
  ] as [string, ...string[]][]) {
    it(`checks --${flag}`, async () => {
      for (const value of values) {
        const { code, out } = await send({ [flag]: value });
        assert.deepEqual([code, out], [2, ''], value);
      }
      assert.deepEqual(await list(), []);
    });
  }

  it('needs a card, a type, an amount and an id', async () => {
    const complete = ['--card', cardId, '--type', 'refund', '--amount', '5', '--network-transaction-id', 'x'];
    for (let i = 0; i < complete.length; i += 2) {
      assert.equal((await operate('network-event', 'send', ...complete.toSpliced(i, 2))).code, 2);
    }
  });
});
