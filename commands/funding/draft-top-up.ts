import { timeOf } from '../../crypto/new-id.ts';
import { ApiError } from '../../domain/api-error.ts';
import { quoteFunding } from '../../domain/fees.ts';
import { checkLimits } from '../../domain/limits.ts';
import { MAX_AMOUNT_CENTS } from '../../domain/money.ts';
import { topUpNotPossible, topUpOfUnknownCard } from '../../domain/topup.ts';
import type { CardRow } from '../../resources/card.ts';
import type { TopUpRow } from '../../resources/topup.ts';
import type { TopUpTerms } from './top-up-terms.ts';

/**
 * The pending top-up that these terms allow; all that can be refused without the ledger is refused here, limits before
 * the balance (decisions.md, "422 limit_exceeded").
 * @throws ApiError `validation_failed` (amount and fees, or the card's balance, past the largest integer), `invalid_state`, `limit_exceeded`.
 */
export function draftTopUp(topUpId: string, terms: TopUpTerms, card: CardRow): TopUpRow {
  const { amount } = terms.request;
  const { fees } = quoteFunding(terms.feePlan, 'card_topup', amount);
  if (BigInt(terms.cardCents + amount) + terms.arrivingCents > BigInt(MAX_AMOUNT_CENTS)) {
    throw ApiError.ofField(
      'amount',
      `amount would take the card's balance above ${MAX_AMOUNT_CENTS} cents, the most it can be`,
    );
  }
  if (card.status !== 'active') throw topUpNotPossible(card.status);
  if (card.mode === 'live' && card.network_card_id === null) throw topUpOfUnknownCard();
  checkLimits(terms.limits, terms.usage, { amountCents: amount, newCards: 0 });
  return {
    id: topUpId,
    partner_id: terms.partnerId,
    mode: terms.mode,
    card_id: card.id,
    status: 'pending',
    failure_code: null,
    amount_cents: String(amount),
    fees,
    card_balance_cents: null,
    overdue_since: null,
    created_at: timeOf(topUpId).toISOString(),
    completed_at: null,
  };
}
