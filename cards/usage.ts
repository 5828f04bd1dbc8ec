import { type RawBuilder, sql } from 'kysely';
import type { Tenant } from '../domain/mode.ts';
import { type Cte, cte, writeStatement } from '../platform/db/sql.ts';
import type { AccountColumns } from '../requests/event.ts';

// What counts towards an account's limits: its open cards, and what was loaded on the last day on which
// something was.

/** Locks what is counted of an account. In the order of locks, nothing of the account comes before it. */
export const lockUsage = writeStatement((db, { partnerId, mode }: Tenant) =>
  db
    .selectFrom('account_usage')
    .select('mode')
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .forNoKeyUpdate(),
);

/** Money that was loaded, and the UTC day it counts in; null if it counts in none. */
export interface Load extends AccountColumns {
  cents: string;
  counted_on: string | null;
}

/** Counts the load that was made. @param cards how many cards were made with it */
export const countLoad = (made: Cte<Load>, cards: 0 | 1): Cte<unknown> =>
  cte(
    'counted',
    sql`
  UPDATE account_usage u SET open_cards = u.open_cards + ${sql.lit(cards)},
    loaded_on = greatest(u.loaded_on, made.counted_on),
    loaded_cents = CASE WHEN u.loaded_on >= made.counted_on THEN u.loaded_cents ELSE 0 END + made.cents
  FROM ${made.rows} made
  WHERE u.partner_id = made.partner_id AND u.mode = made.mode AND made.counted_on IS NOT NULL`,
  );

/**
 * The UPDATE that no longer counts loads of one account that have failed. The account's usage is locked, if
 * any of them counts.
 * @param cards how many cards have failed with them
 */
export const uncountLoads = (failed: RawBuilder<Load>, cards: 0 | 1): RawBuilder<unknown> => sql`
  UPDATE account_usage u SET open_cards = u.open_cards - ${sql.lit(cards)},
    loaded_cents = u.loaded_cents - coalesce(
      (SELECT sum(f.cents) FROM ${failed} f WHERE f.counted_on = u.loaded_on), 0)
  FROM (SELECT DISTINCT partner_id, mode FROM ${failed} f WHERE f.counted_on IS NOT NULL) account
  WHERE u.partner_id = account.partner_id AND u.mode = account.mode`;

/** The UPDATE that no longer counts a blocked card as open. What was loaded on it still counts. */
export const uncountBlocked = (blocked: RawBuilder<AccountColumns>): RawBuilder<unknown> => sql`
  UPDATE account_usage u SET open_cards = u.open_cards - 1
  FROM ${blocked} blocked WHERE u.partner_id = blocked.partner_id AND u.mode = blocked.mode`;
