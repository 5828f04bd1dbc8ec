import type { EntityManager } from '@mikro-orm/postgresql';
import { query } from '../db/sql.ts';
import type { TopUpRow } from '../domain/topup-resource.ts';
import { countFunding } from './account-usage.ts';
import type { Announcement } from './announcement.ts';

/** How many parameters {@link insertTopUp} takes itself. */
export const INSERT_TOP_UP_PARAMETERS = 10;

/**
 * Inserts a new top-up and counts it towards its account's limits, in one statement, together with what is to be
 * announced about it, if it is final already.
 */
export async function insertTopUp(
  tx: EntityManager,
  topUp: TopUpRow,
  announcement?: Announcement,
): Promise<void> {
  await query(
    tx,
    `WITH done AS (
       INSERT INTO topup (id, partner_id, mode, card_id, status, amount_cents, fees, card_balance_cents, created_at,
         completed_at)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
       RETURNING partner_id, mode, amount_cents AS loaded_cents, (created_at AT TIME ZONE 'UTC')::date AS today
     ), counted AS (${countFunding(0)}
     )${announcement === undefined ? '' : `, ${announcement.sql}`}
     SELECT FROM done`,
    [
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
      ...(announcement?.values ?? []),
    ],
  );
}
