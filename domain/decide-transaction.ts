import { ApiError } from './api-error.ts';
import type { CardStatus } from './card-status.ts';
import type { FeePlan } from './fees.ts';
import { MAX_AMOUNT_CENTS } from './money.ts';
import type { ChargedTo, DeclineReason, TransactionType } from './transaction.ts';
import { type TransactionFee, transactionFees } from './transaction-fees.ts';

export interface TransactionRequest {
  type: TransactionType;
  amountCents: number;
  /** A purchase the network settles even though the card is blocked. */
  forced: boolean;
  /** Asked for by simulate-transaction, which takes active cards alone. */
  simulated: boolean;
}

export interface TransactionDecision {
  /** A purchase can have become a decline. */
  type: TransactionType;
  declineReason: DeclineReason | null;
  chargedTo: ChargedTo;
  fees: TransactionFee[];
  cardBalanceAfterCents: number;
}

/**
 * What becomes of a transaction on a card (decisions.md, "Rules" and "Fees").
 * @param card `arrivingCents`: what its pending top-ups will add, which a refund leaves room for
 * @throws ApiError `invalid_state` for a card that is not issued, or not active where it is simulated;
 * `validation_failed` where the card's balance or the fee would go past the largest integer.
 */
export function decideTransaction(
  { type, amountCents, forced, simulated }: TransactionRequest,
  card: { status: CardStatus; balanceCents: number; arrivingCents?: bigint },
  plan: FeePlan,
): TransactionDecision {
  const { status, balanceCents, arrivingCents = 0n } = card;
  refuseState(status, simulated);

  const decline = (declineReason: DeclineReason): TransactionDecision => ({
    type: 'decline',
    declineReason,
    chargedTo: 'card',
    fees: transactionFees(plan, 'decline', amountCents),
    cardBalanceAfterCents: balanceCents,
  });
  if (type === 'decline') return decline(simulated ? 'simulated_decline' : 'declined_by_network');
  if (type === 'purchase') {
    if (status === 'frozen') return decline('card_frozen');
    if (status === 'blocked' && !forced) return decline('card_blocked');
    if (status === 'active' && amountCents > balanceCents) return decline('insufficient_card_balance');
  }

  const chargedTo = status === 'blocked' ? 'partner_balance' : 'card';
  const changeCents = type === 'refund' ? amountCents : -amountCents;
  const cardBalanceAfterCents = chargedTo === 'card' ? balanceCents + changeCents : balanceCents;
  if (type === 'refund' && BigInt(cardBalanceAfterCents) + arrivingCents > BigInt(MAX_AMOUNT_CENTS)) {
    throw ApiError.ofField(
      'amount',
      `amount would take the card's balance above ${MAX_AMOUNT_CENTS} cents, the most it can be`,
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
      ? `The card is ${status}. Transactions can be simulated only on an active card.`
      : `The card is ${status}. A card that was not issued has no transactions.`,
  });
}
