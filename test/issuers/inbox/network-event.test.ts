import assert from 'node:assert/strict';
import { newId } from '../../../platform/crypto/new-id.ts';
import { createCard } from '../../support/cards.ts';
import { assertLedgerClean, fundedPartner } from '../../support/money.ts';
import { assertAudited } from '../../support/operator/audited.ts';
import { environmentOf, type Operate, operateIn } from '../../support/operator/operate.ts';
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

  /** Without a type, a purchase of 300 cents. */
  const send = (flags: Record<string, string>, ...more: string[]) => {
    const usual = flags.type ? {} : { type: 'purchase', amount: '300' };
    const all = { card: cardId, 'network-transaction-id': newId('txn'), ...usual, ...flags };
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
    const sent = { networkTransactionId: 'net-1', type: 'purchase', amountCents: 300, forced: true };
    await assertAudited(operate, 'network-event.send', json.id, { cardId, ...sent });
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
    assert.equal((await send({ type: 'refund', amount: '300' })).json.charged_to, 'partner_balance');
    assert.equal((await send({ type: 'decline', amount: '300' })).json.decline_reason, 'declined_by_network');
  });

  it('refuses test cards, unknown cards and cards that are not issued', async () => {
    const test = (await createCard(partner, { amount: 1_000 })).json.id;
    const pending = (await createCard(partner, { amount: 1_047 }, live)).json.id;
    for (const [card, why, more] of [
      [test, /test card.*simulate-transaction/, {}],
      [newId('card'), /There is no card/, {}],
      ['sk_live_oops', /not the id of a card/, {}],
      [pending, /funding_pending/, {}],
      [pending, /funding_pending/, { type: 'authorization', amount: '300' }],
    ] as const) {
      const { code, out, err } = await send({ card, ...more });
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

  it('asks for an authorization and for more, clears a part, and gives back the rest', async () => {
    const id = newId('txn');
    const about = (type: string, flags: Record<string, string> = {}, ...more: string[]) =>
      send({ type, 'network-authorization-id': id, ...flags }, ...more);
    // biome-ignore lint/suspicious/noExplicitAny: an authorization as it is printed.
    const stateOf = ({ json }: { json: any }) => [
      ...[json.status, json.amount, json.held_amount, json.settled_amount],
    ];
    const onCard = async () => {
      const { json } = await partner.call('GET', `/cards/${cardId}`, live);
      return [json.balance, json.available_balance];
    };
    const asked = await send({ type: 'authorization', amount: '300', 'network-transaction-id': id });
    assert.deepEqual(stateOf(asked), ['pending', 300, 300, 0]);
    assert.deepEqual((await partner.call('GET', `/authorizations/${asked.json.id}`, live)).json, asked.json);
    assert.equal((await operate('audit', 'list')).json[0].action, 'network-event.send');
    assert.deepEqual(stateOf(await about('increment', { amount: '200' })), ['pending', 500, 500, 0]);
    const part = await about('clearing', { amount: '100' }, '--partial');
    assert.deepEqual([part.json.type, part.json.authorization_id], ['purchase', asked.json.id]);
    const again = { amount: '150', 'network-transaction-id': newId('txn') };
    for (let times = 0; times < 2; times++)
      assert.deepEqual(stateOf(await about('reversal', again)), ['pending', 350, 250, 100]);
    assert.match((await about('reversal', { ...again, amount: '1' })).err, /Nothing was changed/);
    assert.deepEqual(await onCard(), [900, 650]);
    assert.deepEqual(stateOf(await about('reversal')), ['closed', 100, 0, 100]);
    assert.deepEqual(stateOf(await about('expiry')), ['closed', 100, 0, 100]);
    assert.deepEqual(await onCard(), [900, 900]);

    const { json: declined } = await about('increment', { amount: '10' });
    assert.equal(declined.requests.at(-1).decline_reason, 'authorization_not_pending');
    const [decline] = await list();
    assert.deepEqual([decline.type, decline.fees.length], ['decline', 1]);
    const unknown = await send({ type: 'increment', amount: '10', 'network-authorization-id': newId('txn') });
    assert.deepEqual(stateOf(unknown), ['pending', 10, 10, 0]);
    const early = await send({ type: 'reversal', 'network-authorization-id': newId('txn') });
    assert.match(early.err, /send its request first/);
    await assertLedgerClean(stack, partner);
  });

  it('makes authorizations that authorization list, authorization show and card show have', async () => {
    const [first, second] = [
      (await send({ type: 'authorization', amount: '100' })).json,
      (await send({ type: 'authorization', amount: '200' })).json,
    ];
    const show = async () => (await operate('authorization', 'show', first.id)).json;
    const ids = async (...flags: string[]) =>
      (await operate('authorization', 'list', '--card', cardId, ...flags)).json.map(
        ({ id }: { id: string }) => id,
      );
    const id = (await show()).network_authorization_id;
    await send({ type: 'clearing', amount: '50', 'network-authorization-id': id });
    assert.deepEqual(await ids(), [second.id, first.id]);
    assert.deepEqual(await ids('--status', 'pending'), [second.id]);
    const { status, transactions } = await show();
    assert.deepEqual([status, transactions.length, transactions[0].amount], ['closed', 1, 50]);
    const { json } = await operate('card', 'show', cardId);
    const [hold, ...others] = json.pending_authorizations;
    assert.deepEqual([json.available_balance, hold.id, hold.held_amount, others], [750, second.id, 200, []]);
    assert.match((await operate('authorization', 'show', newId('auth'))).err, /authorization list/);
  });

  const about = { 'network-authorization-id': 'a' };
  for (const [what, ...wrong] of [
    ['a type', { type: 'capture', amount: '1' }, { type: '', amount: '1' }],
    [
      'an amount',
      ...['0', '-5', '1.5', '9007199254740992', 'ten'].map((amount) => ({ type: 'refund', amount })),
    ],
    ['an id', ...['', 'a b', 'é', 'x'.repeat(101)].map((id) => ({ 'network-transaction-id': id }))],
    ['a category', ...['581', '58123', 'food'].map((code) => ({ 'merchant-category-code': code }))],
    ['a merchant', { 'merchant-name': '' }, { 'merchant-name': 'x'.repeat(256) }],
    ['a country', { type: 'authorization', amount: '1', 'merchant-country': 'XX' }],
    [
      'the flags of a type',
      ...['authorization', 'clearing', 'purchase', 'reversal', 'refund'].map((type) => ({ type })),
      { type: 'expiry', amount: '1', ...about },
      { type: 'refund', amount: '1', ...about },
      { type: 'authorization', amount: '1', partial: '' },
    ],
  ] as [string, ...Record<string, string>[]][]) {
    it(`refuses ${what} that can not be as wrong usage`, async () => {
      for (const flags of wrong) {
        const { code, out } = await send(flags);
        assert.deepEqual([code, out], [2, ''], JSON.stringify(flags));
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
