import { z } from 'zod';
import { ApiError } from './api-error.ts';
import type { FeePlan } from './fees.ts';
import { basisPointsOf, MAX_AMOUNT_CENTS } from './money.ts';

export const TransactionFee = z
  .object({
    type: z
      .enum(['transaction', 'decline'])
      .describe('`transaction`: for a purchase. `decline`: for a decline.'),
    amount: z.int().min(1).describe('Cents.'),
  })
  .meta({ id: 'TransactionFee', description: 'A fee for what a card was used for.' });
export type TransactionFee = z.infer<typeof TransactionFee>;

/**
 * What a transaction costs the partner beside its amount (decisions.md, "Fees"): a flat fee and basis points on a
 * purchase, a flat fee for a decline, nothing for a refund. A fee of zero is left out.
 * @throws ApiError `validation_failed` where the fee is past the largest integer.
 */
export function transactionFees(
  plan: FeePlan,
  type: 'purchase' | 'decline' | 'refund',
  amountCents: number,
): TransactionFee[] {
  if (type === 'refund') return [];
  const cents =
    type === 'decline'
      ? plan.declineFlatCents
      : plan.transactionFlatCents + basisPointsOf(amountCents, plan.transactionBasisPoints);
  if (cents > MAX_AMOUNT_CENTS) {
    throw ApiError.ofField(
      'amount',
      `amount is too large: its fee would be more than ${MAX_AMOUNT_CENTS} cents`,
    );
  }
  return cents === 0 ? [] : [{ type: type === 'decline' ? 'decline' : 'transaction', amount: cents }];
}
