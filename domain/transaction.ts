import { z } from 'zod';
import { ApiError } from './api-error.ts';
import { type DeclineReason, decideDecline } from './authorization.ts';
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

/** A purchase, decline or refund on a card. */
export interface TransactionRequest {
  type: TransactionType;
  amountCents: number;
  /** The network settles this purchase even if the card is blocked. */
  forced: boolean;
  /** It comes from simulate-transaction, which accepts only active cards. */
  simulated: boolean;
  /** An operator books it: a card that failed by our record is treated as a blocked one. */
  byHand?: boolean;
}

export interface TransactionDecision {
  /** A purchase can become a decline. */
  type: TransactionType;
  declineReason: DeclineReason | null;
  chargedTo: Exclude<ChargedTo, 'both'>;
  fees: TransactionFee[];
  cardBalanceAfterCents: number;
}

/**
 * Decides the outcome of a transaction on a card (docs/partners/transactions.md).
 * @param card `heldCents`: how much of its balance authorizations and withdrawals hold. `arrivingCents`: what
 *   its pending top-ups will add; a refund has to leave room for it
 * @param refusedByControls why spending controls refuse a purchase; null if they don't
 * @throws ApiError `invalid_state` if the card was not issued or, for a simulated transaction, is not active;
 * `validation_failed` if the card's balance or the fee would exceed the largest safe integer.
 */
export function decideTransaction(
  { type, amountCents, forced, simulated, byHand }: TransactionRequest,
  card: { status: CardStatus; balanceCents: number; heldCents?: number; arrivingCents?: bigint },
  plan: FeePlan,
  refusedByControls: DeclineReason | null = null,
): TransactionDecision {
  const { balanceCents, heldCents = 0, arrivingCents = 0n } = card;
  const status = byHand && card.status === 'failed' ? 'blocked' : card.status;
  refuseState(status, simulated);

  const decline = (declineReason: DeclineReason): TransactionDecision => ({
    type: 'decline',
    declineReason,
    chargedTo: 'card',
    fees: transactionFees(plan, 'decline', amountCents),
    cardBalanceAfterCents: balanceCents,
  });
  if (type === 'decline') return decline(simulated ? 'simulated_decline' : 'declined_by_network');
  if (type === 'purchase' && !(forced && status === 'blocked')) {
    const availableCents = balanceCents - heldCents;
    const reason = decideDecline({ status, availableCents }, amountCents, refusedByControls);
    if (reason !== null) return decline(reason);
  }

  const chargedTo = status === 'blocked' ? 'partner_balance' : 'card';
  const changeCents = type === 'refund' ? amountCents : -amountCents;
  const cardBalanceAfterCents = chargedTo === 'card' ? balanceCents + changeCents : balanceCents;
  if (type === 'refund' && BigInt(cardBalanceAfterCents) + arrivingCents > BigInt(MAX_AMOUNT_CENTS)) {
    throw ApiError.ofField(
      'amount',
      `amount would take the card's balance above the maximum of ${MAX_AMOUNT_CENTS} cents`,
    );
  }
  const fees = transactionFees(plan, type, amountCents);
  return { type, declineReason: null, chargedTo, fees, cardBalanceAfterCents };
}

function refuseState(status: CardStatus, simulated: boolean): void {
  const isIssued = status !== 'funding_pending' && status !== 'failed';
  if (simulated ? status === 'active' : isIssued) return;
  throw new ApiError('invalid_state', {
    message: simulated
      ? `The card is ${status}. You can only simulate transactions on an active card.`
      : `The card is ${status}. A card that was not issued cannot have transactions.`,
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
