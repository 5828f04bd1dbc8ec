import assert from 'node:assert/strict';
import { setCurrentProduct } from '../../../commands/products/products.ts';
import { expectError, expectReplay } from '../../support/api/answers.ts';
import { settledCard } from '../../support/cards.ts';
import { balanceOf, fundedPartner } from '../../support/money.ts';
import { asOwner } from '../../support/postgres.ts';
import { startTestStack, TEST_PRODUCT, type TestPartner, type TestStack } from '../../support/stack.ts';

describe('an Idempotency-Key', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await startTestStack();
  });
  beforeEach(async () => {
    partner = await fundedPartner(stack, 10_000);
  });
  after(() => stack.stop());

  const create = (body: unknown, idempotencyKey = 'k', mode: 'test' | 'live' = 'test') =>
    partner.call('POST', '/cards', { body, idempotencyKey, mode });
  const CARD = { amount: 1_000, external_ref: 'r', email: 'a@example.com' };
  /** Its money moved once: the rest of 10,000 after the card and its fees. */
  const AFTER_CARD = [8_850, 0, 8_850];

  it('replays a 201 byte for byte, even when the card has changed since', async () => {
    const first = await create(CARD);
    assert.equal(first.status, 201, first.text);
    await asOwner(stack, `UPDATE card SET status = 'frozen'`);
    expectReplay(await create(CARD), first);
    expectReplay(await create(CARD), first);
    assert.deepEqual(await balanceOf(partner), AFTER_CARD);
  });

  it('replays a 202 unchanged when the card has become active', async () => {
    const first = await create({ amount: 1_041, external_ref: 'r' }, 'k', 'live');
    assert.equal(first.status, 202, first.text);
    assert.equal((await settledCard(partner, first.json.id)).status, 'active');
    const again = await create({ amount: 1_041, external_ref: 'r' }, 'k', 'live');
    expectReplay(again, first);
    assert.equal(again.json.status, 'funding_pending');
  });

  it('replays a 201 of the faucet', async () => {
    const credit = () => partner.call('POST', '/test/credit', { body: { amount: 5 }, idempotencyKey: 'k' });
    const first = await credit();
    assert.equal(first.status, 201);
    expectReplay(await credit(), first);
    assert.deepEqual(await balanceOf(partner), [10_005, 0, 10_005]);
  });

  const REFUSALS: [what: string, status: number, code: string, body: object, mode?: 'live'][] = [
    ['402 for insufficient funds', 402, 'insufficient_funds', { amount: 10_000, external_ref: 'r2' }],
    ['402 from the network', 402, 'provider_declined', { amount: 142, external_ref: 'r2' }, 'live'],
    ['409 for a taken external_ref', 409, 'external_ref_taken', CARD],
    ['422 for a limit', 422, 'limit_exceeded', { amount: 99, external_ref: 'r2' }],
    ['422 for a product', 422, 'product_not_allowed', { ...CARD, external_ref: 'r2', product_code: 'X' }],
  ];
  for (const [what, status, code, body, mode] of REFUSALS) {
    it(`replays a ${what}, whatever the balance is by then`, async () => {
      assert.equal((await create(CARD, 'first')).status, 201);
      const first = await create(body, 'k', mode);
      assert.equal(first.status, status, first.text);
      assert.equal(first.json.error.code, code);
      // The error has the id of the refused request; the replay has an id of its own in its header.
      assert.equal(first.json.error.request_id, first.headers.get('request-id'));
      await partner.call('POST', '/test/credit', { body: { amount: 10_000_000 }, idempotencyKey: 'c' });
      expectReplay(await create(body, 'k', mode), first);
    });
  }

  it('replays a 409 for a missing product when there is one again', async () => {
    const bare = await startTestStack({}, { product: false });
    try {
      partner = await fundedPartner(bare, 10_000);
      const first = await create(CARD);
      expectError(first, 'no_product_configured');
      await setCurrentProduct(bare.operator, TEST_PRODUCT);
      expectReplay(await create(CARD), first);
      assert.equal((await create(CARD, 'another')).status, 201);
    } finally {
      await bare.stop();
    }
  });

  it('treats the same fields in another order and with other spaces as the same request', async () => {
    const first = await create(CARD);
    const reordered = '{ "email":"a@example.com","external_ref":"\\u0072",\n"amount":1000}';
    expectReplay(await create(reordered), first);
  });

  it('gets 422 with another body or endpoint, and nothing changes', async () => {
    const first = await create(CARD);
    const { email: _, ...shorter } = CARD;
    for (const body of [{ ...CARD, amount: 1_001 }, { ...CARD, card_name: 'x' }, shorter]) {
      expectError(await create(body), 'idempotency_conflict');
    }
    const credit = { body: { amount: 1_000 }, idempotencyKey: 'k' };
    expectError(await partner.call('POST', '/test/credit', credit), 'idempotency_conflict');
    expectReplay(await create(CARD), first);
    assert.deepEqual(await balanceOf(partner), AFTER_CARD);
  });

  it('stands for one request in each account and mode', async () => {
    const other = await fundedPartner(stack, 10_000);
    const answers = [
      await create(CARD, 'k', 'test'),
      await create({ ...CARD, amount: 2_000 }, 'k', 'live'),
      await other.call('POST', '/cards', { body: { ...CARD, amount: 3_000 }, idempotencyKey: 'k' }),
    ];
    assert.deepEqual(
      answers.map((answer) => [answer.status, answer.json.balance]),
      [
        [201, 1_000],
        [201, 2_000],
        [201, 3_000],
      ],
    );
  });

  it('is compared with its case, inner spaces and all 255 characters', async () => {
    const keys = ['a', 'A', 'a b', `${'x'.repeat(254)}1`, `${'x'.repeat(254)}2`, "'; --", '{}'];
    for (const [index, key] of keys.entries()) {
      const answer = await create({ amount: 100, external_ref: `r-${index}` }, key);
      assert.equal(answer.status, 201, `${key}: ${answer.text}`);
      assert.equal(answer.headers.get('idempotent-replayed'), null);
    }
  });
});
