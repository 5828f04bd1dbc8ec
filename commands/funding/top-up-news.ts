import { type CardRow, presentCard } from '../../resources/card.ts';
import { presentTopUp, type TopUpRow } from '../../resources/topup.ts';
import type { News } from '../idempotency/announcement.ts';

/** A top-up that is over. */
export type EndedTopUp = TopUpRow & { status: 'succeeded' | 'failed'; card_balance_cents: string };

/** How a top-up ended. @param topUp and card the rows as they are from now on */
export function topUpNews(topUp: EndedTopUp, card: CardRow): News {
  const balanceCents = Number(topUp.card_balance_cents);
  const topup = presentTopUp(topUp, balanceCents);
  return {
    type: topUp.status === 'succeeded' ? 'topup.succeeded' : 'topup.failed',
    mode: topUp.mode,
    cardId: card.id,
    data: { topup, card: presentCard(card, balanceCents) },
    answer: { status: 201, resource: topup },
  };
}
