import assert from 'node:assert/strict';
import fc from 'fast-check';
import { ApiError } from '../../../domain/api-error.ts';
import { DEFAULT_FEE_PLAN, type FeePlan } from '../../../domain/fees.ts';
import { requireUsable, transactionFees } from '../../../domain/transaction.ts';

describe('requireUsable', () => {
  for (const [who, isSimulation, statuses] of [
    ["the network's transaction", false, ['funding_pending', 'failed']],
    ['a simulated transaction', true, ['funding_pending', 'failed', 'frozen', 'blocked']],
  ] as const) {
    for (const status of statuses)
      it(`refuses ${who} on a card that is ${status} with invalid_state`, () =>
        assert.throws(
          () => requireUsable(status, isSimulation),
          (error) =>
            error instanceof ApiError && error.code === 'invalid_state' && error.message.includes(status),
        ));
  }
});

const plan = (more: Partial<FeePlan>): FeePlan => ({
  ...DEFAULT_FEE_PLAN,
  transactionFlatCents: 0,
  transactionBasisPoints: 0,
  declineFlatCents: 0,
  ...more,
});
const feeOf = (more: Partial<FeePlan>, amountCents: number) =>
  transactionFees(plan(more), 'purchase', amountCents);

describe('transactionFees', () => {
  it('charges a flat fee and basis points for a purchase', () => {
    const fees = feeOf({ transactionFlatCents: 10, transactionBasisPoints: 50 }, 10_000);
    assert.deepEqual(fees, [{ type: 'transaction', amount: 60 }]);
  });

  it('charges a flat fee for a decline, whatever its amount, and none for a refund', () => {
    const own = plan({ transactionFlatCents: 7, transactionBasisPoints: 10_000, declineFlatCents: 25 });
    for (const amountCents of [1, 10_000, Number.MAX_SAFE_INTEGER]) {
      assert.deepEqual(transactionFees(own, 'decline', amountCents), [{ type: 'decline', amount: 25 }]);
      assert.deepEqual(transactionFees(own, 'refund', amountCents), []);
    }
  });

  it('leaves out a fee of zero', () => {
    assert.deepEqual(feeOf({}, 10_000), []);
    assert.deepEqual(transactionFees(plan({}), 'decline', 10_000), []);
  });

  it('refuses a fee past the largest integer', () => {
    const dear = { transactionFlatCents: 1, transactionBasisPoints: 10_000 };
    assert.equal(feeOf(dear, Number.MAX_SAFE_INTEGER - 1)[0]?.amount, Number.MAX_SAFE_INTEGER);
    assert.throws(
      () => feeOf(dear, Number.MAX_SAFE_INTEGER),
      (error) => error instanceof ApiError && error.code === 'validation_failed',
    );
  });

  it('is exact to the cent for every plan and amount', () => {
    fc.assert(
      fc.property(
        fc.nat(1_000_000),
        fc.nat(10_000),
        fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER - 1_000_000 }),
        (transactionFlatCents, transactionBasisPoints, amountCents) => {
          const [fee] = feeOf({ transactionFlatCents, transactionBasisPoints }, amountCents);
          // Twice the distance from the exact fee, in ten-thousandths of a cent: rounding moves it by half a cent at most.
          const exact = BigInt(amountCents) * BigInt(transactionBasisPoints);
          const off = 2n * (BigInt((fee?.amount ?? 0) - transactionFlatCents) * 10_000n - exact);
          assert.ok(off > -10_000n && off <= 10_000n);
        },
      ),
    );
  });
});
