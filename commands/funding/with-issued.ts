import type { IssuedCard } from '../../domain/card.ts';
import type { CardRow } from '../../resources/card.ts';

/** The row of a card that the network has issued. */
export function withIssued(card: CardRow, issued: IssuedCard): CardRow & { status: 'active' } {
  return {
    ...card,
    status: 'active',
    network_card_id: issued.networkCardId,
    last4: issued.last4,
    exp_month: issued.expMonth,
    exp_year: issued.expYear,
  };
}
