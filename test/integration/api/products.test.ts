import assert from 'node:assert/strict';
import { allowProducts, retireProduct, setCurrentProduct } from '../../../commands/products/products.ts';
import { expectError } from '../../support/api/answers.ts';
import { createCard } from '../../support/cards.ts';
import { fundedPartner } from '../../support/money.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';

const A = { code: 'A', bin: '400000', network: 'visa' };
const B = { code: 'B', bin: '500000', network: 'mastercard' };
const C = { code: 'C', bin: '600000', network: 'visa' };

describe('products', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let other: TestPartner;
  before(async () => {
    stack = await startTestStack({ cardCreationWaitMs: 30_000 }, { product: false });
    partner = await fundedPartner(stack, 100_000);
    other = await fundedPartner(stack, 100_000);
  });
  after(() => stack.stop());

  const listed = async (mode: 'test' | 'live' = 'test') => {
    const { status, json } = await partner.call('GET', '/products', { mode });
    assert.equal(status, 200);
    const { data, ...envelope } = json;
    assert.deepEqual(envelope, { object: 'list', has_more: false, next_cursor: null });
    return data;
  };
  const shown = ({ code, bin, network }: typeof A) => ({ product_code: code, bin, network });
  const issue = async (product_code?: string) => {
    const answer = await createCard(partner, { amount: 1_000, ...(product_code && { product_code }) });
    assert.equal(answer.status, 201, answer.text);
    return [answer.json.product_code, answer.json.network];
  };

  it('there are none at first: an empty list, and 409 for a card, whichever is asked for', async () => {
    assert.deepEqual(await listed(), []);
    expectError(await createCard(partner, { amount: 1_000 }), 'no_product_configured');
    expectError(await createCard(partner, { amount: 1_000, product_code: 'A' }), 'no_product_configured');
  });

  it("the current one is every account's, by default and by its code", async () => {
    await setCurrentProduct(stack.operator, A);
    assert.deepEqual(await listed(), [shown(A)]);
    assert.deepEqual(await issue(), ['A', 'visa']);
    assert.deepEqual(await issue('A'), ['A', 'visa']);
  });

  it('another is refused with 422, known or not', async () => {
    for (const code of ['B', 'a', 'A ', 'nothing']) {
      expectError(await createCard(partner, { amount: 1_000, product_code: code }), 'product_not_allowed');
    }
  });

  it('a new current one takes effect at once, and cards keep theirs', async () => {
    const before = (await createCard(partner, { amount: 1_000 })).json;
    await setCurrentProduct(stack.operator, B);
    assert.deepEqual(await listed(), [shown(B)]);
    assert.deepEqual(await issue(), ['B', 'mastercard']);
    expectError(await createCard(partner, { amount: 1_000, product_code: 'A' }), 'product_not_allowed');
    assert.equal((await partner.call('GET', `/cards/${before.id}`)).json.product_code, 'A');
  });

  it('further ones can be allowed to one account, which then selects among them; the current one comes first', async () => {
    await setCurrentProduct(stack.operator, C);
    await setCurrentProduct(stack.operator, B);
    await allowProducts(stack.operator, partner.id, ['C', 'A']);
    assert.deepEqual(await listed(), [shown(B), shown(A), shown(C)]);
    assert.deepEqual(await issue(), ['B', 'mastercard']);
    assert.deepEqual(await issue('A'), ['A', 'visa']);
    assert.deepEqual(await issue('C'), ['C', 'visa']);
    assert.deepEqual((await other.call('GET', '/products')).json.data, [shown(B)]);
    expectError(await createCard(other, { amount: 1_000, product_code: 'A' }), 'product_not_allowed');
  });

  it("a retired one can't be issued any more, whoever was allowed it", async () => {
    await retireProduct(stack.operator, 'A');
    assert.deepEqual(await listed(), [shown(B), shown(C)]);
    expectError(await createCard(partner, { amount: 1_000, product_code: 'A' }), 'product_not_allowed');
    await setCurrentProduct(stack.operator, A);
    assert.deepEqual(await issue(), ['A', 'visa']);
  });

  it('go before limits and balance', async () => {
    expectError(await createCard(partner, { amount: 1, product_code: 'X' }), 'product_not_allowed');
  });

  it('are the same in live mode with a network', async () => {
    assert.deepEqual(await listed('live'), await listed('test'));
    const { json } = await createCard(partner, { amount: 1_000, product_code: 'C' }, { mode: 'live' });
    assert.deepEqual([json.status, json.product_code], ['active', 'C']);
  });
});

describe('live mode without a network', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await startTestStack({ cardNetwork: 'none' });
    partner = await fundedPartner(stack, 10_000);
  });
  after(() => stack.stop());

  it('reads, quotes and has no products', async () => {
    for (const path of ['/ping', '/balance', '/cards']) {
      assert.equal((await partner.call('GET', path, { mode: 'live' })).status, 200, path);
    }
    const quote = { mode: 'live', body: { type: 'card_issue', amount: 100 } } as const;
    assert.equal((await partner.call('POST', '/quotes', quote)).status, 200);
    assert.deepEqual((await partner.call('GET', '/products', { mode: 'live' })).json.data, []);
  });

  it('answers 409 for a card and holds nothing', async () => {
    expectError(await createCard(partner, { amount: 1_000 }, { mode: 'live' }), 'no_product_configured');
    assert.equal((await partner.call('GET', '/balance', { mode: 'live' })).json.held, 0);
  });

  it('leaves test mode as it is', async () => {
    assert.equal((await partner.call('GET', '/products')).json.data.length, 1);
    assert.equal((await createCard(partner, { amount: 1_000 })).status, 201);
  });
});
