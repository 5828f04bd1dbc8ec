import assert from 'node:assert/strict';
import { expectError } from '../support/api/answers.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';

describe('POST /quotes', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack('api');
    partner = await stack.createPartner();
  });

  const quote = (body: unknown) => partner.call('POST', '/quotes', { body });

  it("quotes an issuance with the platform's fee plan", async () => {
    const { status, json } = await quote({ type: 'card_issue', amount: 10_025 });
    assert.equal(status, 200);
    assert.deepEqual(json, {
      type: 'card_issue',
      currency: 'USD',
      card_amount: 10_025,
      total_debited: 10_025 + 100 + 201,
      fees: [
        { type: 'card_activation', amount: 100 },
        { type: 'card_funding', amount: 201 },
      ],
    });
  });

  it('quotes a top-up without an activation fee', async () => {
    const { json } = await quote({ type: 'card_topup', amount: 1 });
    assert.deepEqual(json, {
      ...{ type: 'card_topup', currency: 'USD', card_amount: 1, total_debited: 51 },
      fees: [{ type: 'card_funding', amount: 50 }],
    });
  });

  it('needs no Idempotency-Key and no balance, and holds nothing', async () => {
    await quote({ type: 'card_issue', amount: 1_000_000 });
    assert.equal((await partner.call('GET', '/balance')).json.held, 0);
  });

  it('quotes the largest amount whose fees still fit, and refuses the next with 400', async () => {
    // The largest x with x + 100 + x / 50, rounded half up, at most 2^53 − 1.
    const most = 8_830_587_504_647_932;
    const fits = await quote({ type: 'card_issue', amount: most });
    assert.equal(fits.status, 200, fits.text);
    assert.ok(fits.json.total_debited <= Number.MAX_SAFE_INTEGER);
    expectError(await quote({ type: 'card_issue', amount: most + 1 }), 'validation_failed', ['amount']);
    expectError(await quote({ type: 'card_topup', amount: Number.MAX_SAFE_INTEGER }), 'validation_failed', [
      'amount',
    ]);
  });

  it('says what is wrong with each field', async () => {
    const messages = async (body: unknown) => (await quote(body)).json.error.message;
    assert.equal(await messages({ type: 'card_issue' }), 'amount is required');
    assert.equal(
      await messages({ type: 'card_issue', amount: '5' }),
      'amount must be an integer number of cents',
    );
    assert.equal(
      await messages({ type: 'card_issue', amount: 0 }),
      'amount must be between 1 and 9007199254740991',
    );
    assert.equal(await messages({ type: 'x', amount: 1 }), 'type must be one of card_issue, card_topup');
    assert.equal(await messages({ type: 'card_issue', amount: 1, x: 1 }), 'x is not a field of this request');
    assert.equal(
      await messages({ type: 'card_issue', amount: 1, ['x'.repeat(60_000)]: 1 }),
      `${'x'.repeat(100)}… is not a field of this request`,
    );
    assert.equal(await messages([]), 'body must be a JSON object');
  });
});
