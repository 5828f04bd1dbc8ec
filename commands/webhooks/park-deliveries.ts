import type { Orm } from '../../db/orm.ts';
import { query } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';

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
      `UPDATE delivery d SET lease_expires_at = '-infinity',
         status = CASE WHEN w.status IS NULL THEN 'parked' ELSE 'pending' END,
         next_attempt_at = CASE WHEN w.status IS NOT NULL THEN clock_timestamp() END,
         workflow = CASE WHEN w.status IS NULL AND d.workflow = 'told' THEN 'untold' ELSE d.workflow END
       FROM delivery k LEFT JOIN webhook_endpoint w
         ON w.partner_id = k.partner_id AND w.mode = k.mode AND w.status = 'enabled'
       WHERE k.event_id = ANY ($1) AND d.event_id = k.event_id AND d.status <> 'delivered'`,
      [eventIds],
    );
  });
}
