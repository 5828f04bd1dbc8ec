import type { Orm } from '../db/orm.ts';
import { query } from '../db/sql.ts';
import { transaction } from '../db/transaction.ts';

/**
 * Sets events aside whose endpoint is gone or disabled (decisions.md, "Rules"). Those whose endpoint has been enabled
 * again meanwhile, or made, go to the relay: both take the account's row, which is locked here until the commit.
 */
export async function parkDeliveries(orm: Orm, eventIds: string[]): Promise<void> {
  await transaction(orm, async (tx) => {
    await query(
      tx,
      `SELECT FROM partner WHERE id IN (SELECT partner_id COLLATE "default" FROM delivery WHERE event_id = ANY ($1))
       ORDER BY id FOR SHARE`,
      [eventIds],
    );
    await query(
      tx,
      `UPDATE delivery d SET lease_expires_at = '-infinity', next_attempt_at = NULL,
         status = CASE WHEN d.status = 'delivered' THEN d.status
           WHEN EXISTS (SELECT FROM webhook_endpoint w
             WHERE w.partner_id = d.partner_id AND w.mode = d.mode AND w.status = 'enabled') THEN 'pending'
           ELSE 'parked' END
       WHERE d.event_id = ANY ($1)`,
      [eventIds],
    );
  });
}
