import assert from 'node:assert/strict';
import { expectError } from '../support/api/answers.ts';
import { balanceOf } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';
import { cardholder, transfer } from '../support/transfers.ts';

/** What is left after a card of 1,000 cents with its fees. */
const LEFT_CENTS = 8_850;

describe('a partner who does what the message says', () => {
  for (const mode of ['test', 'live'] as const) {
    it(`learns from a ${mode} 402 what it costs and what is available, for a card and for a top-up`, async () => {
      const holder = await cardholder(await sharedStack(), mode, LEFT_CENTS);
      const { partner } = holder;
      const body = { amount: 9_000, external_ref: 'r' };
      for (const [refusal, costs] of [
        [await partner.call('POST', '/cards', { body, mode, idempotencyKey: 'k' }), 9_280],
        [await transfer('topup', holder, 9_000), 9_180],
      ] as const) {
        expectError(refusal, 'insufficient_funds');
        assert.match(
          refusal.json.error.message,
          new RegExp(
            `^This costs ${costs} cents with its fees, and 8850 cents are available, so nothing was debited\\. ` +
              'Fund the balance, then send the request with a new Idempotency-Key:',
          ),
        );
      }
      assert.deepEqual(await balanceOf(partner, mode), [LEFT_CENTS, 0, LEFT_CENTS]);
    });
  }
});
