import { z } from 'zod';
import { ApiError } from './api-error.ts';
import type { CardStatus } from './card-status.ts';
import { applyBasisPoints, type FeePlan } from './fees.ts';
import { MAX_AMOUNT_CENTS } from './money.ts';

export const TransactionType = z.enum(['purchase', 'decline', 'refund']).meta({
  id: 'TransactionType',
  description:
    '`purchase`: the amount left the card. `decline`: no money moved, apart from the fee. `refund`: the amount was returned.',
});
export type TransactionType = z.infer<typeof TransactionType>;

/**
 * Whose money moves: the card's, the account's prepaid balance's, or both if the card lacks a part of a
 * clearing.
 */
export const ChargedTo = z.enum(['card', 'partner_balance', 'both']).meta({
  id: 'ChargedTo',
  description:
    'What the amount was taken from or returned to: the card, your balance, or both. See `card_amount` and ' +
    '`partner_balance_amount`.',
});
export type ChargedTo = z.infer<typeof ChargedTo>;

export const TransactionFee = z
  .object({
    type: z
      .enum(['transaction', 'decline'])
      .describe('`transaction`: for a purchase. `decline`: for a decline.'),
    amount: z.int().min(1).describe('Cents.'),
  })
  .meta({ id: 'TransactionFee', description: 'A fee for a transaction on a card.' });
export type TransactionFee = z.infer<typeof TransactionFee>;

/**
 * Refuses what a card of this status can't have.
 * @param isSimulation whether a partner simulates it, which takes an active card
 * @throws ApiError `invalid_state`
 */
export function requireUsable(status: CardStatus, isSimulation = false): void {
  const isIssued = status !== 'funding_pending' && status !== 'failed';
  if (isSimulation ? status === 'active' : isIssued) return;
  throw new ApiError('invalid_state', {
    message: isSimulation
      ? `The card is ${status}. You can only simulate transactions on an active card.`
      : `The card is ${status}. A card that was not issued cannot be used.`,
  });
}

/**
 * What a transaction costs the partner on top of its amount (docs/partners/money-fees-and-limits.md): a flat
 * fee and basis points for a purchase, a flat fee for a decline, nothing for a refund. A fee of zero is left
 * out.
 * @throws ApiError `validation_failed` if the fee exceeds the largest safe integer.
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
      : plan.transactionFlatCents + applyBasisPoints(amountCents, plan.transactionBasisPoints);
  if (cents > MAX_AMOUNT_CENTS) {
    throw ApiError.ofField('amount', `amount is too large: its fee would exceed ${MAX_AMOUNT_CENTS} cents`);
  }
  return cents === 0 ? [] : [{ type: type === 'decline' ? 'decline' : 'transaction', amount: cents }];
}
