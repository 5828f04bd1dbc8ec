import type { TopUpRow } from '../../resources/topup.ts';
import type { EndedTopUp } from './top-up-news.ts';

/** The row of a top-up whose money is on the card. @param cardBalanceCents of the card, with it */
export function withLoaded(topUp: TopUpRow, cardBalanceCents: number): EndedTopUp {
  return {
    ...topUp,
    status: 'succeeded',
    card_balance_cents: String(cardBalanceCents),
    completed_at: new Date().toISOString(),
  };
}
