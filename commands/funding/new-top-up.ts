import type { TopUpRow } from '../../resources/topup.ts';
import type { NewFunding } from './insert-funding.ts';

/** The INSERT of a top-up. */
export const newTopUp = (topUp: TopUpRow): NewFunding => ({
  sql: `
    INSERT INTO topup (id, partner_id, mode, card_id, status, amount_cents, fees, card_balance_cents, created_at,
      completed_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
    RETURNING partner_id, mode, amount_cents AS loaded_cents, counted_on AS today`,
  values: [
    topUp.id,
    topUp.partner_id,
    topUp.mode,
    topUp.card_id,
    topUp.status,
    topUp.amount_cents,
    JSON.stringify(topUp.fees),
    topUp.card_balance_cents,
    topUp.created_at,
    topUp.completed_at,
  ],
  newCards: 0,
});
