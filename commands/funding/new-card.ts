import type { CardRow } from '../../resources/card.ts';
import type { NewFunding } from './insert-funding.ts';

/** The INSERT of a card. */
export const newCard = (card: CardRow): NewFunding => ({
  sql: `
    INSERT INTO card (id, partner_id, mode, status, external_ref, card_name, cardholder_first_name,
      cardholder_last_name, email, product_code, network, funding_cents, fees, created_at,
      network_card_id, last4, exp_month, exp_year)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
      ($17::int[])[1], ($17::int[])[2])
    ON CONFLICT (partner_id, mode, external_ref) WHERE status <> 'failed' DO NOTHING
    RETURNING partner_id, mode, funding_cents AS loaded_cents, counted_on AS today`,
  values: [
    card.id,
    card.partner_id,
    card.mode,
    card.status,
    card.external_ref,
    card.card_name,
    card.cardholder_first_name,
    card.cardholder_last_name,
    card.email,
    card.product_code,
    card.network,
    card.funding_cents,
    JSON.stringify(card.fees),
    card.created_at,
    card.network_card_id,
    card.last4,
    [card.exp_month, card.exp_year],
  ],
  newCards: 1,
});
