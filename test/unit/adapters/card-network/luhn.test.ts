import assert from 'node:assert/strict';
import fc from 'fast-check';
import { luhnCheckDigit } from '../../../../adapters/card-network/derived-cards.ts';
import { passesLuhn } from '../../../support/adapters/luhn.ts';

describe('luhnCheckDigit', () => {
  it('completes published numbers', () => {
    for (const number of ['4111111111111111', '5555555555554444', '378282246310005', '79927398713', '00']) {
      assert.equal(luhnCheckDigit(number.slice(0, -1)), number.slice(-1));
    }
  });

  it('makes any digits pass, and no other digit does', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[0-9]{1,18}$/), (digits) => {
        const passing = [...'0123456789'].filter((digit) => passesLuhn(digits + digit));
        assert.deepEqual(passing, [luhnCheckDigit(digits)]);
      }),
    );
  });
});
