import assert from 'node:assert/strict';
import { expectError } from '../support/api/answers.ts';
import { balanceOf } from '../support/money.ts';
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

  it("has the platform's fees, of which a top-up has no activation fee, needs no balance and holds nothing", async () => {
    const activation = { type: 'card_activation', amount: 100 };
    for (const [type, amount, total, fees] of [
      ['card_issue', 10_025, 10_326, [activation, { type: 'card_funding', amount: 201 }]],
      ['card_topup', 1, 51, [{ type: 'card_funding', amount: 50 }]],
    ] as const) {
      const { status, json } = await quote({ type, amount });
      assert.equal(status, 200);
      assert.deepEqual(json, { type, currency: 'USD', card_amount: amount, total_debited: total, fees });
    }
    assert.deepEqual(await balanceOf(partner), [0, 0, 0]);
  });

  it('quotes the largest amount whose fees still fit, and refuses the next with 400', async () => {
    // The largest x with x + 100 + x / 50, rounded half up, at most 2^53 − 1.
    const most = 8_830_587_504_647_932;
    const fits = await quote({ type: 'card_issue', amount: most });
    assert.equal(fits.status, 200, fits.text);
    assert.ok(fits.json.total_debited <= Number.MAX_SAFE_INTEGER);
    for (const tooMuch of [
      { type: 'card_issue', amount: most + 1 },
      { type: 'card_topup', amount: Number.MAX_SAFE_INTEGER },
    ])
      expectError(await quote(tooMuch), 'validation_failed', ['amount']);
  });

  it('says what is wrong with each field', async () => {
    const type = 'card_issue';
    for (const [body, message] of [
      [{ type }, 'amount is required'],
      [{ type, amount: '5' }, 'amount must be an integer number of cents'],
      [{ type, amount: 0 }, 'amount must be between 1 and 9007199254740991'],
      [{ type: 'x', amount: 1 }, 'type must be one of card_issue, card_topup'],
      [{ type, amount: 1, x: 1 }, 'x is not a field of this request'],
      [{ type, amount: 1, ['x'.repeat(60_000)]: 1 }, `${'x'.repeat(100)}… is not a field of this request`],
      [[], 'body must be a JSON object'],
    ] as const)
      assert.equal((await quote(body)).json.error.message, message);
  });
});
