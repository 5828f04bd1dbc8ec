import type { EntityManager } from '@mikro-orm/postgresql';
import { query } from '../db/sql.ts';
import { ApiError } from '../domain/api-error.ts';
import type { CardRow } from '../domain/card-resource.ts';
import { countFunding } from './account-usage.ts';
import type { Announcement } from './announcement.ts';

/** How many parameters {@link insertCard} takes itself. */
export const INSERT_CARD_PARAMETERS = 17;

/**
 * Inserts a new card and counts it towards its account's limits, in one statement, together with what is to be
 * announced about it, if it is final already.
 * @throws ApiError `external_ref_taken`; nothing was written then.
 */
export async function insertCard(
  tx: EntityManager,
  card: CardRow,
  announcement?: Announcement,
): Promise<void> {
  const [made] = await query(
    tx,
    `WITH done AS (
       INSERT INTO card (id, partner_id, mode, status, external_ref, card_name, cardholder_first_name,
         cardholder_last_name, email, product_code, network, funding_cents, fees, created_at,
         network_card_id, last4, exp_month, exp_year)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
         ($17::int[])[1], ($17::int[])[2])
       ON CONFLICT (partner_id, mode, external_ref) WHERE status <> 'failed' DO NOTHING
       RETURNING id, partner_id, mode, funding_cents AS loaded_cents, (created_at AT TIME ZONE 'UTC')::date AS today
     ), counted AS (${countFunding(1)}
     )${announcement === undefined ? '' : `, ${announcement.sql}`}
     SELECT id FROM done`,
    [
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
      ...(announcement?.values ?? []),
    ],
  );
  if (made === undefined) throw new ApiError('external_ref_taken');
}
