import { type CardRow, presentCard } from '../../resources/card.ts';
import type { News } from '../idempotency/announcement.ts';

/** How an issuance ended. @param card the row as it is from now on */
export function issuanceNews(card: CardRow & { status: 'active' | 'failed' }): News {
  const isActive = card.status === 'active';
  const resource = presentCard(card, isActive ? Number(card.funding_cents) : 0);
  return {
    type: isActive ? 'card.issued' : 'card.issue_failed',
    mode: card.mode,
    cardId: card.id,
    data: { card: resource },
    answer: { status: 201, resource },
  };
}
