import assert from 'node:assert/strict';
import { newId } from '../../../crypto/new-id.ts';
import { expectError } from '../../support/api/answers.ts';
import { createCard } from '../../support/cards.ts';
import { fundedPartner } from '../../support/money.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';

describe('GET /cards/{cardId}/transactions', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let cardId: string;
  let ids: string[];
  before(async () => {
    stack = await sharedStack();
    partner = await fundedPartner(stack, 100_000);
    cardId = (await createCard(partner, { amount: 1_000 })).json.id;
    ids = [];
    for (const type of ['purchase', 'decline', 'refund', 'purchase', 'decline'])
      ids.unshift(await simulate(type));
  });

  const simulate = async (type: string): Promise<string> => {
    const body = { type, amount: 10 };
    return (await partner.call('POST', `/test/cards/${cardId}/simulate-transaction`, { body })).json.id;
  };
  const list = (query = '', id = cardId) => partner.call('GET', `/cards/${id}/transactions${query}`);
  const idsOf = ({ json }: { json: { data: { id: string }[] } }) => json.data.map(({ id }) => id);

  it('lists all transactions newest first, including declines', async () => {
    const answer = await list();
    assert.equal(answer.status, 200);
    assert.deepEqual(idsOf(answer), ids);
    assert.deepEqual(
      [answer.json.object, answer.json.has_more, answer.json.next_cursor],
      ['list', false, null],
    );
    assert.deepEqual(
      answer.json.data.map(({ type, status }: { type: string; status: string }) => [type, status]),
      [
        ['decline', 'declined'],
        ['purchase', 'settled'],
        ['refund', 'settled'],
        ['decline', 'declined'],
        ['purchase', 'settled'],
      ],
    );
  });

  it('has pages that stay the same while new transactions arrive', async () => {
    const first = await list('?limit=2');
    assert.deepEqual([idsOf(first), first.json.has_more], [ids.slice(0, 2), true]);
    ids.unshift(await simulate('refund'));
    const second = await list(`?limit=2&starting_after=${first.json.next_cursor}`);
    assert.deepEqual([idsOf(second), second.json.has_more], [ids.slice(3, 5), true]);
    const last = await list(`?limit=2&starting_after=${second.json.next_cursor}`);
    assert.deepEqual([idsOf(last), last.json.has_more, last.json.next_cursor], [ids.slice(5), false, null]);
    const beyond = await list(`?starting_after=${ids.at(-1)}`);
    assert.deepEqual([beyond.status, idsOf(beyond)], [200, []]);
  });

  it('answers an empty list for a card without transactions, whatever its status', async () => {
    const pending = await createCard(partner, { amount: 1_047 }, { mode: 'live' });
    const { status, json } = await partner.call('GET', `/cards/${pending.json.id}/transactions`, {
      mode: 'live',
    });
    assert.deepEqual([status, json.data, json.has_more], [200, [], false]);
  });

  it('answers 404 for a card of another account or mode, and for an unknown one', async () => {
    const stranger = await fundedPartner(stack, 10_000);
    expectError(await stranger.call('GET', `/cards/${cardId}/transactions`), 'card_not_found');
    expectError(
      await partner.call('GET', `/cards/${cardId}/transactions`, { mode: 'live' }),
      'card_not_found',
    );
    for (const id of [newId('card'), 'card_1', '%27']) expectError(await list('', id), 'card_not_found');
    expectError(await list(`?starting_after=${ids[0]}`, newId('card')), 'card_not_found');
  });

  it('answers 400 for a wrong query, and for a cursor of another card', async () => {
    const other = (await createCard(partner, { amount: 1_000 })).json.id;
    expectError(await list(`?starting_after=${ids[0]}`, other), 'validation_failed', ['starting_after']);
    for (const cursor of [newId('txn'), cardId, 'txn_1', '']) {
      expectError(await list(`?starting_after=${cursor}`), 'validation_failed', ['starting_after']);
    }
    for (const limit of ['0', '101', 'x', '1.0', '-1', '']) {
      expectError(await list(`?limit=${limit}`), 'validation_failed', ['limit']);
    }
    expectError(await list('?type=purchase'), 'validation_failed', ['type']);
  });
});
