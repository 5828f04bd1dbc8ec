import fc from 'fast-check';
import { negotiateFees, negotiateLimits } from '../../../accounts/partners.ts';
import type { FeePlan } from '../../../domain/fees.ts';
import { MAX_AMOUNT_CENTS } from '../../../domain/money.ts';
import type { TestPartner, TestStack } from '../stack.ts';

export const MAX = MAX_AMOUNT_CENTS;
const FREE: FeePlan = {
  ...{ cardActivationCents: 0, cardFundingBasisPoints: 0, cardFundingMinCents: 0 },
  ...{ transactionFlatCents: 0, transactionBasisPoints: 0, declineFlatCents: 0 },
};

const cents = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 5_000 }) },
  { weight: 1, arbitrary: fc.constantFrom(0, 1, MAX - 1, MAX) },
);
const FEES = fc.record({
  cardActivationCents: cents,
  cardFundingBasisPoints: fc.oneof(fc.integer({ min: 0, max: 500 }), fc.constantFrom(0, 1, 9_999, 10_000)),
  cardFundingMinCents: cents,
});
const AMOUNTS = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 100_000 }) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: MAX }) },
  { weight: 1, arbitrary: fc.constantFrom(1, 25, 49, 50, 2_500, 4_999, MAX - 1, MAX) },
);

/** The cases for what a funding costs; what fails some seconds later, and so gives its money back meanwhile, is left out. */
export const FUNDINGS = fc
  .record({ plan: FEES, amount: AMOUNTS, mode: fc.constantFrom('test' as const, 'live' as const) })
  .filter(({ amount, mode }) => mode === 'test' || amount % 100 !== 43);

/** Gives an account these fees and no others, and limits that no amount reaches. */
export async function negotiatePlan(
  { operator }: TestStack,
  { id }: TestPartner,
  plan: Partial<FeePlan>,
): Promise<void> {
  await negotiateFees(operator, id, { ...FREE, ...plan });
  await negotiateLimits(operator, id, { minCardCents: 1, maxCardCents: MAX, maxIssuedPerDayCents: MAX });
}
