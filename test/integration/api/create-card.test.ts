import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { query } from '../../../db/sql.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';

describe('POST /cards in test mode', () => {
  let stack: TestStack;
  let partner: TestPartner;

  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    partner = await stack.createPartner();
  });

  const credit = async (amount: number) => {
    const answer = await partner.call('POST', '/test/credit', {
      body: { amount },
      idempotencyKey: randomUUID(),
    });
    assert.equal(answer.status, 201, answer.text);
    return answer.json;
  };
  const create = (body: object, idempotencyKey: string = randomUUID()) =>
    partner.call('POST', '/cards', { body, idempotencyKey });

  it('issues an active card at once and debits amount and fees', async () => {
    await credit(10_000);
    const quote = await partner.call('POST', '/quotes', { body: { type: 'card_issue', amount: 5_000 } });
    const created = await create({
      amount: 5_000,
      external_ref: 'r-1',
      card_name: 'Ads',
      cardholder_first_name: 'Ada',
      cardholder_last_name: 'Lovelace',
      email: 'ada@example.com',
    });
    assert.equal(created.status, 201, created.text);
    assert.match(created.json.id, /^card_[0-9a-z]{26}$/);
    assert.match(created.json.last4, /^\d{4}$/);
    const { id, last4, exp_month, exp_year, created: at, ...rest } = created.json;
    assert.deepEqual(rest, {
      object: 'card',
      status: 'active',
      balance: 5_000,
      available_balance: 5_000,
      currency: 'USD',
      external_ref: 'r-1',
      card_name: 'Ads',
      cardholder_first_name: 'Ada',
      cardholder_last_name: 'Lovelace',
      email: 'ada@example.com',
      metadata: {},
      spending_controls: null,
      product_code: 'TEST-USD',
      network: 'visa',
      mode: 'test',
      failure_code: null,
    });
    assert.ok(exp_month >= 1 && exp_month <= 12 && exp_year > 2026);
    assert.equal(new Date(at).toISOString(), at);

    const balance = await partner.call('GET', '/balance');
    const available = 10_000 - quote.json.total_debited;
    assert.deepEqual(balance.json, {
      object: 'balance',
      mode: 'test',
      currency: 'USD',
      available,
      held: 0,
      total: available,
    });
    assert.deepEqual((await partner.call('GET', `/cards/${id}`)).json, created.json);

    const events = await query<{ type: string; body: string }>(
      stack.orm.em.fork(),
      'SELECT type, body FROM event WHERE card_id = $1',
      [id],
    );
    assert.equal(events.length, 1);
    assert.equal(events[0]?.type, 'card.issued');
    assert.deepEqual(JSON.parse(events[0]?.body ?? '').data.card, created.json);
  });
});
