import { z } from 'zod';
import { ApiError } from './api-error.ts';
import { MAX_AMOUNT_CENTS } from './money.ts';

const Cents = z.int().min(0).max(MAX_AMOUNT_CENTS);
const BasisPoints = z.int().min(0).max(10_000);

/**
 * What an account pays (docs/partners/money-fees-and-limits.md). A negotiated plan replaces the default as a
 * whole.
 */
export const FeePlan = z.strictObject({
  cardActivationCents: Cents,
  cardFundingBasisPoints: BasisPoints,
  cardFundingMinCents: Cents,
  transactionFlatCents: Cents,
  transactionBasisPoints: BasisPoints,
  declineFlatCents: Cents,
});
export type FeePlan = z.infer<typeof FeePlan>;

/** The platform's plan, for accounts that negotiated none. */
export const DEFAULT_FEE_PLAN: FeePlan = {
  cardActivationCents: 100,
  cardFundingBasisPoints: 200,
  cardFundingMinCents: 50,
  transactionFlatCents: 10,
  transactionBasisPoints: 50,
  declineFlatCents: 25,
};

/** The fee plan of an account, as its row has it: null if none was negotiated. */
export const feePlanOf = (stored: unknown): FeePlan =>
  stored === null ? DEFAULT_FEE_PLAN : FeePlan.parse(stored);

export const FundingKind = z.enum(['card_issue', 'card_topup']).meta({
  id: 'FundingType',
  description: '`card_issue`: a new card. `card_topup`: an existing card.',
});
export type FundingKind = z.infer<typeof FundingKind>;

export const Fee = z
  .object({
    type: z
      .enum(['card_activation', 'card_funding'])
      .describe('`card_activation`: for issuing a card. `card_funding`: for putting money on a card.'),
    amount: z.int().min(1).describe('Cents.'),
  })
  .meta({ id: 'Fee', description: 'A fee for issuing a card or topping one up.' });
export type Fee = z.infer<typeof Fee>;

interface Quote {
  fees: Fee[];
  /** The amount that lands on the card and all fees. */
  totalDebitedCents: number;
}

/** 402: the available balance does not cover what would be debited. */
export function insufficientFunds(totalDebitedCents: number, availableCents: number): ApiError {
  return new ApiError('insufficient_funds', {
    message:
      `This costs ${totalDebitedCents} cents with its fees, and ${availableCents} cents are available, so nothing was ` +
      'debited. Fund the balance, then send the request with a new Idempotency-Key: the one you used keeps this response.',
  });
}

/**
 * What it costs to put `amountCents` on a card. Quotes, holds and debits are all computed here
 * (docs/partners/money-fees-and-limits.md). A fee of zero is left out.
 * @throws ApiError `validation_failed` if the sum exceeds the largest safe integer.
 */
export function quoteFunding(plan: FeePlan, kind: FundingKind, amountCents: number): Quote {
  const funding = Math.max(
    applyBasisPoints(amountCents, plan.cardFundingBasisPoints),
    plan.cardFundingMinCents,
  );
  const fees: Fee[] = [
    { type: 'card_activation' as const, amount: kind === 'card_issue' ? plan.cardActivationCents : 0 },
    { type: 'card_funding' as const, amount: funding },
  ].filter((fee) => fee.amount > 0);
  const total = fees.reduce((sum, fee) => sum + BigInt(fee.amount), BigInt(amountCents));
  if (total > BigInt(MAX_AMOUNT_CENTS)) {
    throw ApiError.ofField(
      'amount',
      `amount is too large: with fees, it would exceed ${MAX_AMOUNT_CENTS} cents`,
    );
  }
  return { fees, totalDebitedCents: Number(total) };
}

/** `amountCents` × basis points, rounded half up, exact for every safe integer. */
export function applyBasisPoints(amountCents: number, basisPoints: number): number {
  return Number((BigInt(amountCents) * BigInt(basisPoints) + 5_000n) / 10_000n);
}
