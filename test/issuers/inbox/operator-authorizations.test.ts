import assert from 'node:assert/strict';
import { newId } from '../../../platform/crypto/new-id.ts';
import { createCard } from '../../support/cards.ts';
import { assertLedgerClean, fundedPartner } from '../../support/money.ts';
import { environmentOf, type Operate, operateIn } from '../../support/operator/operate.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';

const live = { mode: 'live' } as const;

describe('operator network-event send, about authorizations', () => {
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
  after(() => assertLedgerClean(stack, partner));

  const send = async (type: string, flags: Record<string, string> = {}, ...more: string[]) => {
    const all = { card: cardId, type, 'network-transaction-id': newId('txn'), ...flags };
    const args = Object.entries(all).flatMap(([name, value]) => [`--${name}`, value]);
    return operate('network-event', 'send', ...args, ...more);
  };
  const about = (id: string) => ({ 'network-authorization-id': id });
  const read = async (id: string) => (await partner.call('GET', `/authorizations/${id}`, live)).json;
  const card = async () => {
    const { json } = await partner.call('GET', `/cards/${cardId}`, live);
    return [json.balance, json.available_balance];
  };
  const shown = async (id: string) => (await operate('authorization', 'show', id)).json;
  // biome-ignore lint/suspicious/noExplicitAny: an authorization as it is printed.
  const stateOf = (json: any) => [json.status, json.amount, json.held_amount, json.settled_amount];

  it('asks, asks for more, clears a part, and gives back the rest', async () => {
    const id = newId('txn');
    const asked = await send('authorization', { amount: '300', 'network-transaction-id': id });
    assert.deepEqual([asked.code, ...stateOf(asked.json)], [0, 'pending', 300, 300, 0]);
    assert.deepEqual(await read(asked.json.id), asked.json);
    assert.equal((await operate('audit', 'list')).json[0].action, 'network-event.send');
    const more = await send('increment', { amount: '200', ...about(id) });
    assert.deepEqual(stateOf(more.json), ['pending', 500, 500, 0]);
    const part = await send('clearing', { amount: '100', ...about(id) }, '--partial');
    assert.deepEqual([part.json.type, part.json.authorization_id], ['purchase', asked.json.id]);
    const back = await send('reversal', { amount: '150', ...about(id) });
    assert.deepEqual(stateOf(back.json), ['pending', 350, 250, 100]);
    assert.deepEqual(await card(), [900, 650]);
    const rest = await send('reversal', about(id));
    assert.deepEqual(stateOf(rest.json), ['closed', 100, 0, 100]);
    assert.deepEqual(await card(), [900, 900]);
  });

  it('prints the same again for a message that is repeated, and changes nothing', async () => {
    const id = newId('txn');
    const request = { amount: '300', 'network-transaction-id': id };
    const first = await send('authorization', request);
    const answers = await Promise.all([send('authorization', request), send('authorization', request)]);
    for (const { json } of answers) assert.deepEqual(json, first.json);
    const reversal = { amount: '100', ...about(id), 'network-transaction-id': newId('txn') };
    for (let times = 0; times < 3; times++) {
      assert.deepEqual(stateOf((await send('reversal', reversal)).json), ['pending', 200, 200, 0]);
    }
    const clearing = { amount: '50', ...about(id), 'network-transaction-id': newId('txn') };
    const cleared = await send('clearing', clearing, '--partial');
    assert.deepEqual((await send('clearing', clearing, '--partial')).json, cleared.json);
    assert.deepEqual(await card(), [950, 800]);
    const other = await send('reversal', { ...reversal, amount: '99' });
    assert.match(other.err, /Nothing was changed. A different message/);
    const taken = await send('authorization', { amount: '1', ...about(id) });
    assert.match(taken.err, /Nothing was changed. The network's id of the authorization/);
  });

  it('declines an increment of an authorization that has ended, with its fee, and decides one of an unknown authorization as a request', async () => {
    const id = newId('txn');
    await send('authorization', { amount: '300', 'network-transaction-id': id });
    assert.deepEqual(stateOf((await send('expiry', about(id))).json), ['expired', 300, 0, 0]);
    const { json } = await send('increment', { amount: '10', ...about(id) });
    assert.equal(json.requests[1].decline_reason, 'authorization_not_pending');
    assert.equal(json.status, 'expired');
    const [decline] = (await partner.call('GET', `/cards/${cardId}/transactions`, live)).json.data;
    assert.deepEqual(
      [decline.type, decline.decline_reason, decline.fees.length],
      ['decline', 'authorization_not_pending', 1],
    );
    const unknown = await send('increment', { amount: '10', ...about(newId('txn')) });
    assert.deepEqual(stateOf(unknown.json), ['pending', 10, 10, 0]);
    assert.equal(unknown.json.requests[0].type, 'authorization');
  });

  it('gives back at most what is left, and changes nothing once the authorization has ended', async () => {
    const id = newId('txn');
    await send('authorization', { amount: '300', 'network-transaction-id': id });
    assert.deepEqual(stateOf((await send('reversal', { amount: '900', ...about(id) })).json), [
      'reversed',
      0,
      0,
      0,
    ]);
    const types = async () => (await partner.call('GET', '/events?limit=100', live)).json.data.length;
    const before = await types();
    for (const type of ['reversal', 'expiry']) {
      assert.deepEqual(stateOf((await send(type, about(id))).json), ['reversed', 0, 0, 0]);
    }
    assert.equal(await types(), before);
    const unknown = await send('reversal', about(newId('txn')));
    assert.match(unknown.err, /send its request first/);
  });

  for (const { partial, held, status } of [
    { partial: true, held: 100, status: 'pending' },
    { partial: false, held: 0, status: 'closed' },
  ]) {
    it(`holds ${held} cents for a request whose ${partial ? 'partial' : 'final'} clearing came first, and links them`, async () => {
      const id = newId('txn');
      const early = await send(
        'clearing',
        { amount: '200', ...about(id) },
        ...(partial ? ['--partial'] : []),
      );
      assert.deepEqual([early.json.authorization_id, early.json.card_amount], [null, 200]);
      const { json } = await send('authorization', { amount: '300', ...about(id) });
      assert.deepEqual(stateOf(json), [status, 300, held, 200]);
      assert.deepEqual(await card(), [800, 800 - held]);
      const [linked] = (await partner.call('GET', `/cards/${cardId}/transactions`, live)).json.data;
      assert.deepEqual([linked.id, linked.authorization_id], [early.json.id, json.id]);
    });
  }

  it('books a clearing of a declined authorization without one, and never declines it', async () => {
    const id = newId('txn');
    const asked = await send('authorization', { amount: '3000', 'network-transaction-id': id });
    assert.equal(asked.json.status, 'declined');
    const { json } = await send('clearing', { amount: '3000', ...about(id) });
    assert.deepEqual(
      [json.type, json.authorization_id, json.card_amount, json.partner_balance_amount],
      ['purchase', null, 1_000, 2_000],
    );
  });

  it('never lets twenty requests at once hold more than the card has', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => send('authorization', { amount: '99' })),
    );
    assert.equal(answers.filter(({ json }) => json.status === 'pending').length, 10);
    assert.deepEqual(await card(), [1_000, 10]);
  });

  it('is shown by authorization list, authorization show and card show', async () => {
    const first = (await send('authorization', { amount: '100' })).json;
    const second = (await send('authorization', { amount: '200' })).json;
    await send('clearing', { amount: '50', ...about((await shown(first.id)).network_authorization_id) });
    const listed = (await operate('authorization', 'list', '--card', cardId)).json;
    assert.deepEqual(
      listed.map(({ id }: { id: string }) => id),
      [second.id, first.id],
    );
    const pending = await operate('authorization', 'list', '--card', cardId, '--status', 'pending');
    assert.deepEqual([pending.json.length, pending.json[0].id], [1, second.id]);
    const closed = await shown(first.id);
    const [clearing] = closed.transactions;
    assert.deepEqual([closed.status, closed.transactions.length, clearing.amount], ['closed', 1, 50]);
    const { json } = await operate('card', 'show', cardId);
    assert.deepEqual([json.balance, json.available_balance], [950, 750]);
    const [hold] = json.pending_authorizations;
    assert.deepEqual([json.pending_authorizations.length, hold.id, hold.held_amount], [1, second.id, 200]);
    assert.match((await operate('authorization', 'show', newId('auth'))).err, /authorization list/);
  });

  it('refuses flags that do not go with the type', async () => {
    for (const [type, flags, more] of [
      ['authorization', {}, []],
      ['clearing', {}, []],
      ['purchase', {}, []],
      ['reversal', {}, []],
      ['expiry', { ...about('a'), amount: '1' }, []],
      ['refund', { ...about('a'), amount: '1' }, []],
      ['authorization', { amount: '1' }, ['--partial']],
      ['authorization', { amount: '1', 'merchant-country': 'XX' }, []],
    ] as const) {
      assert.equal((await send(type, flags, ...more)).code, 2, type);
    }
  });
});
