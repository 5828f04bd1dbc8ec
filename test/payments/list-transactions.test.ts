import assert from 'node:assert/strict';
import { expectError } from '../support/api/answers.ts';
import { type AuthorizedCard, authorizedCard } from '../support/authorizations.ts';
import { fundedPartner } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner } from '../support/stack.ts';

describe('the filters of GET /transactions', () => {
  let partner: TestPartner;
  let other: TestPartner;
  let cards: AuthorizedCard[];
  let made: { id: string; type: string; card_id: string }[];
  before(async () => {
    const stack = await sharedStack('api');
    partner = await fundedPartner(stack, 1_000_000);
    other = await fundedPartner(stack, 1_000_000);
    cards = [await authorizedCard(partner), await authorizedCard(partner)];
    made = [];
    for (const type of ['purchase', 'decline', 'refund', 'purchase', 'refund']) {
      for (const card of cards) {
        const { json } = await card.simulate({ type, amount: 10 });
        made.unshift({ id: json.id, type, card_id: card.id });
      }
    }
    await (await authorizedCard(other)).simulate({ type: 'purchase', amount: 10 });
  });

  const list = async (query = '') => {
    const { json, status, text } = await partner.call('GET', `/transactions?${query}`);
    assert.equal(status, 200, text);
    return json.data.map(({ id, type, card_id }: (typeof made)[number]) => ({ id, type, card_id }));
  };

  it('has the transactions of all cards of the account without any', async () => {
    assert.deepEqual(await list(), made);
  });

  it('shows each as the list of its card does', async () => {
    const [mine] = cards;
    const ofCard = await mine?.transactions();
    const { json } = await partner.call('GET', `/transactions?card_id=${mine?.id}`);
    assert.deepEqual(json.data, ofCard);
  });

  it('filters by card and by type, alone and together, and by page', async () => {
    for (const card of [undefined, ...cards]) {
      for (const type of [undefined, 'purchase', 'decline', 'refund']) {
        const query = new URLSearchParams({ ...(card && { card_id: card.id }), ...(type && { type }) });
        const wanted = made.filter(
          (one) =>
            (card === undefined || one.card_id === card.id) && (type === undefined || one.type === type),
        );
        assert.deepEqual(await list(String(query)), wanted);
        query.set('starting_after', wanted[0]?.id ?? '');
        query.set('limit', '1');
        assert.deepEqual(await list(String(query)), wanted.slice(1, 2));
      }
    }
  });

  it("is empty for a card that doesn't exist, or is another account's", async () => {
    const [theirs] = (await other.call('GET', '/cards')).json.data;
    assert.deepEqual(await list(`card_id=${theirs.id}`), []);
    assert.deepEqual(await list(`card_id=${theirs.id}&type=purchase`), []);
    assert.deepEqual(await list(`card_id=card_${'0'.repeat(26)}`), []);
  });

  it('answers 400 for what no filter can be, and for one that it does not have', async () => {
    for (const [query, paths] of [
      ['card_id=x&type=PURCHASE', ['card_id', 'type']],
      ['status=settled', ['status']],
    ] as const)
      expectError(await partner.call('GET', `/transactions?${query}`), 'validation_failed', paths);
  });
});
