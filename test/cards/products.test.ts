import assert from 'node:assert/strict';
import { allowProducts, retireProduct, setCurrentProduct } from '../../cards/products.ts';
import { expectError, expectReplay } from '../support/api/answers.ts';
import { createCard } from '../support/cards.ts';
import { fundedPartner } from '../support/money.ts';
import { type Answer, startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';

const A = { code: 'A', bin: '400000', scheme: 'visa' };
const B = { code: 'B', bin: '500000', scheme: 'mastercard' };
const C = { code: 'C', bin: '600000', scheme: 'visa' };

describe('the service', () => {
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
  let refused: Answer;
  const keyed = () =>
    createCard(partner, { amount: 1_000, external_ref: 'r' }, { idempotencyKey: 'before the first product' });
  const shown = ({ code, bin, scheme }: typeof A) => ({ product_code: code, bin, network: scheme });
  const issue = async (product_code?: string) => {
    const answer = await createCard(partner, { amount: 1_000, ...(product_code && { product_code }) });
    assert.equal(answer.status, 201, answer.text);
    return [answer.json.product_code, answer.json.network];
  };

  it('has no product at first, lists none, and answers 409 for a card with any product', async () => {
    assert.deepEqual(await listed(), []);
    refused = await keyed();
    expectError(refused, 'no_product_configured');
    expectError(await createCard(partner, { amount: 1_000, product_code: 'A' }), 'no_product_configured');
  });

  it('offers the current product to every account, by default and by its code', async () => {
    await setCurrentProduct(stack.operator, A);
    assert.deepEqual(await listed(), [shown(A)]);
    assert.deepEqual(await issue(), ['A', 'visa']);
    assert.deepEqual(await issue('A'), ['A', 'visa']);
    // The earlier refusal is what its key stands for.
    expectReplay(await keyed(), refused);
  });

  it('refuses any other product with 422, known or not', async () => {
    for (const code of ['B', 'a', 'A ', 'nothing']) {
      expectError(await createCard(partner, { amount: 1_000, product_code: code }), 'product_not_allowed');
    }
  });

  it('uses a new current product at once, and cards keep theirs', async () => {
    const before = (await createCard(partner, { amount: 1_000 })).json;
    await setCurrentProduct(stack.operator, B);
    assert.deepEqual(await listed(), [shown(B)]);
    assert.deepEqual(await issue(), ['B', 'mastercard']);
    expectError(await createCard(partner, { amount: 1_000, product_code: 'A' }), 'product_not_allowed');
    assert.equal((await partner.call('GET', `/cards/${before.id}`)).json.product_code, 'A');
  });

  it('lets an account choose among further products allowed to it, and lists the current one first', async () => {
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

  it('refuses a retired product to every account', async () => {
    await retireProduct(stack.operator, 'A');
    assert.deepEqual(await listed(), [shown(B), shown(C)]);
    expectError(await createCard(partner, { amount: 1_000, product_code: 'A' }), 'product_not_allowed');
    await setCurrentProduct(stack.operator, A);
    assert.deepEqual(await issue(), ['A', 'visa']);
  });

  it('checks the product before limits and balance', async () => {
    expectError(await createCard(partner, { amount: 1, product_code: 'X' }), 'product_not_allowed');
  });

  it('does the same in live mode with a network', async () => {
    assert.deepEqual(await listed('live'), await listed('test'));
    const { json } = await createCard(partner, { amount: 1_000, product_code: 'C' }, { mode: 'live' });
    assert.deepEqual([json.status, json.product_code], ['active', 'C']);
  });
});

describe('the service in live mode without a network', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await startTestStack({ cardNetwork: 'none' });
    partner = await fundedPartner(stack, 10_000);
  });
  after(() => stack.stop());

  it('answers reads and quotes, and lists no products', async () => {
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

  it('serves test mode as usual', async () => {
    assert.equal((await partner.call('GET', '/products')).json.data.length, 1);
    assert.equal((await createCard(partner, { amount: 1_000 })).status, 201);
  });
});
