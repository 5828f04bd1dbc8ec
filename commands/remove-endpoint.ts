import type { Orm } from '../db/orm.ts';
import { query } from '../db/sql.ts';
import type { Tenant } from '../db/tenant.ts';
import { transaction } from '../db/transaction.ts';
import { lockPartner } from './lock-partner.ts';

/**
 * Forgets an endpoint and its secret. Its events under way are parked as they come up; those from then on have no
 * endpoint. @returns whether there was one
 */
export function removeEndpoint(orm: Orm, { partnerId, mode }: Tenant): Promise<boolean> {
  return transaction(orm, async (tx) => {
    await lockPartner(tx, partnerId);
    const removed = await query(
      tx,
      'DELETE FROM webhook_endpoint WHERE partner_id = $1 AND mode = $2 RETURNING mode',
      [partnerId, mode],
    );
    return removed.length > 0;
  });
}
