import assert from 'node:assert/strict';
import fc from 'fast-check';
import { ApiError } from '../../../domain/api-error.ts';
import { applyBasisPoints, DEFAULT_FEE_PLAN, FeePlan, quoteFunding } from '../../../domain/fees.ts';
import { MAX_AMOUNT_CENTS } from '../../../domain/money.ts';

const amounts = fc.oneof(
  fc.integer({ min: 1, max: 1_000_000 }),
  fc.integer({ min: 1, max: MAX_AMOUNT_CENTS }),
);
const cents = fc.oneof(fc.nat(10_000), fc.integer({ min: 0, max: MAX_AMOUNT_CENTS }));
const plans = fc.record({
  cardActivationCents: cents,
  cardFundingBasisPoints: fc.nat(10_000),
  cardFundingMinCents: cents,
  transactionFlatCents: cents,
  transactionBasisPoints: fc.nat(10_000),
  declineFlatCents: cents,
});

describe('applyBasisPoints', () => {
  it('is within half a cent of the exact value, and above it in the middle', () => {
    fc.assert(
      fc.property(amounts, fc.nat(10_000), (amount, basisPoints) => {
        const off =
          BigInt(applyBasisPoints(amount, basisPoints)) * 10_000n - BigInt(amount) * BigInt(basisPoints);
        assert.ok(off > -5_000n && off <= 5_000n);
      }),
    );
  });
});

describe('quoteFunding', () => {
  it('returns a total of the amount and its fees, and no fee of zero', () => {
    fc.assert(
      fc.property(
        plans,
        amounts,
        fc.constantFrom('card_issue' as const, 'card_topup' as const),
        (plan, amount, kind) => {
          const activation = kind === 'card_issue' ? plan.cardActivationCents : 0;
          const share = applyBasisPoints(amount, plan.cardFundingBasisPoints);
          const funding = Math.max(share, plan.cardFundingMinCents);
          const total = BigInt(amount) + BigInt(activation) + BigInt(funding);
          if (total > BigInt(MAX_AMOUNT_CENTS)) {
            assert.throws(
              () => quoteFunding(plan, kind, amount),
              (error) => error instanceof ApiError && error.code === 'validation_failed',
            );
            return;
          }
          const quote = quoteFunding(plan, kind, amount);
          assert.equal(BigInt(quote.totalDebitedCents), total);
          assert.deepEqual(quote.fees, [
            ...(activation > 0 ? [{ type: 'card_activation', amount: activation }] : []),
            ...(funding > 0 ? [{ type: 'card_funding', amount: funding }] : []),
          ]);
        },
      ),
      { numRuns: 1_000 },
    );
  });

  it("charges the minimum until the percentage exceeds it, with the platform's plan", () => {
    const funding = (amount: number) => quoteFunding(DEFAULT_FEE_PLAN, 'card_topup', amount).fees[0]?.amount;
    assert.deepEqual([1, 2_499, 2_500, 2_524, 2_525].map(funding), [50, 50, 50, 50, 51]);
  });
});

describe('FeePlan', () => {
  it("accepts the platform's plan and no other shape", () => {
    assert.deepEqual(FeePlan.parse(DEFAULT_FEE_PLAN), DEFAULT_FEE_PLAN);
    for (const wrong of [
      { cardActivationCents: -1 },
      { cardActivationCents: 0.5 },
      { cardActivationCents: MAX_AMOUNT_CENTS + 1 },
      { cardFundingBasisPoints: 10_001 },
      { declineFlatCents: '1' },
      { monthlyCents: 1 },
    ]) {
      const { success } = FeePlan.safeParse({ ...DEFAULT_FEE_PLAN, ...wrong });
      assert.equal(success, false, JSON.stringify(wrong));
    }
  });
});
