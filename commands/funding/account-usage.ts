import type { EntityManager } from '@mikro-orm/postgresql';
import { query } from '../../db/sql.ts';
import type { Mode } from '../../domain/mode.ts';

/**
 * SQL that counts a funding towards its account's limits, for a statement whose CTE `done` has its partner_id, mode,
 * `loaded_cents` and `today`, the UTC day it was made on.
 * @param newCards how many open cards it makes
 */
export const countFunding = (newCards: 0 | 1): string => `
  UPDATE account_usage u SET open_cards = u.open_cards + ${newCards}, loaded_on = greatest(u.loaded_on, done.today),
    loaded_cents = CASE WHEN u.loaded_on >= done.today THEN u.loaded_cents ELSE 0 END + done.loaded_cents
  FROM done WHERE u.partner_id = done.partner_id AND u.mode = done.mode`;

/** SQL that counts an open card no longer, for a statement whose CTE `done` has its partner_id and mode. */
export const uncountOpenCard = `
  UPDATE account_usage u SET open_cards = u.open_cards - 1
  FROM done WHERE u.partner_id = done.partner_id AND u.mode = done.mode`;

/**
 * What failed doesn't count: neither as an open card nor, on the day it was counted, as cents loaded.
 * @param funding the card or top-up, whose row is still there
 */
export async function uncountFunding(
  tx: EntityManager,
  funding: { id: string; partner_id: string; mode: Mode },
  loadedCents: string,
  newCards: 0 | 1,
): Promise<void> {
  await query(
    tx,
    `UPDATE account_usage SET open_cards = open_cards - $5::int,
       loaded_cents = loaded_cents - CASE WHEN loaded_on = coalesce(
         (SELECT counted_on FROM card WHERE id = $3), (SELECT counted_on FROM topup WHERE id = $3))
         THEN $4::bigint ELSE 0 END
     WHERE partner_id = $1 AND mode = $2`,
    [funding.partner_id, funding.mode, funding.id, loadedCents, newCards],
  );
}
