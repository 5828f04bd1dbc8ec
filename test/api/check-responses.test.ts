import assert from 'node:assert/strict';
import { query } from '../../platform/db/sql.ts';
import { createCard } from '../support/cards.ts';
import { fundedPartner } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';

describe('the API under test', () => {
  it('answers 500 if an answer does not match its declaration, and names route, status and field', async () => {
    const stack = await sharedStack();
    const partner = await fundedPartner(stack);
    const { id } = (await createCard(partner, { amount: 1_000 })).json;
    await query(stack.orm.em.fork(), 'UPDATE card SET exp_year = 26 WHERE id = $1', [id]);
    const { status, json } = await partner.call('GET', `/cards/${id}`);
    assert.equal(status, 500);
    assert.match(
      json.error.message,
      /^GET \/cards\/:cardId answered 200, which is not what it declares: exp_year: /,
    );
  });
});
