import assert from 'node:assert/strict';
import { AccountLimits, checkLimits, DEFAULT_LIMITS } from '../../../accounts/limits-rules.ts';
import { ApiError } from '../../../domain/api-error.ts';
import { MAX_AMOUNT_CENTS } from '../../../domain/money.ts';

const NOTHING = { openCards: 0, loadedTodayCents: 0 };

describe('checkLimits', () => {
  const exceeds = (usage: typeof NOTHING, amountCents: number, newCards: 0 | 1, message: RegExp) =>
    assert.throws(
      () => checkLimits(DEFAULT_LIMITS, usage, { amountCents, newCards }),
      (error) => error instanceof ApiError && error.code === 'limit_exceeded' && message.test(error.message),
    );
  const passes = (usage: typeof NOTHING, amountCents: number, newCards: 0 | 1) =>
    checkLimits(DEFAULT_LIMITS, usage, { amountCents, newCards });

  it('allows the limits themselves, and not a cent or a card more', () => {
    passes(NOTHING, 100, 1);
    exceeds(NOTHING, 99, 1, /amount must be at least 100 cents\./);
    passes(NOTHING, 1_000_000, 1);
    exceeds(NOTHING, 1_000_001, 1, /amount must be at most 1000000 cents\./);
    passes({ ...NOTHING, openCards: 9_999 }, 100, 1);
    exceeds({ ...NOTHING, openCards: 10_000 }, 100, 1, /can have 10000 open cards and already has 10000\./);
    passes({ ...NOTHING, loadedTodayCents: 99_999_900 }, 100, 1);
    exceeds(
      { ...NOTHING, loadedTodayCents: 99_999_901 },
      100,
      1,
      /100000000 cents per UTC day and has loaded 99999901 today\./,
    );
  });

  it('lets an account fund the cards that it has, even if it has more than it may have now', () => {
    passes({ ...NOTHING, openCards: 10_000 }, 100, 0);
    passes({ ...NOTHING, openCards: 10_500 }, 100, 0);
  });
});

describe('AccountLimits', () => {
  it("accepts the platform's limits and no other shape", () => {
    assert.deepEqual(AccountLimits.parse(DEFAULT_LIMITS), DEFAULT_LIMITS);
    const tooMuch = { maxCardCents: MAX_AMOUNT_CENTS + 1 };
    for (const wrong of [
      { minCardCents: 0 },
      tooMuch,
      { maxOpenCards: -1 },
      { maxOpenCards: 1.5 },
      { x: 1 },
    ]) {
      const { success } = AccountLimits.safeParse({ ...DEFAULT_LIMITS, ...wrong });
      assert.equal(success, false, JSON.stringify(wrong));
    }
  });
});
