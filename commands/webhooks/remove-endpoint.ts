import type { Orm } from '../../db/orm.ts';
import { writeStatement } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import type { Tenant } from '../../domain/tenant.ts';
import { lockPartner } from '../accounts/partners.ts';

/**
 * Forgets an endpoint and its secret. Its events under way are parked as they come up; those from then on have no
 * endpoint. @returns whether there was one
 */
export function removeEndpoint(orm: Orm, { partnerId, mode }: Tenant): Promise<boolean> {
  return transaction(orm, async (tx) => {
    await lockPartner(tx, partnerId);
    const removed = await deleteEndpoint(tx, { partnerId, mode });
    return removed.length > 0;
  });
}

const deleteEndpoint = writeStatement((db, { partnerId, mode }: Tenant) =>
  db
    .deleteFrom('webhook_endpoint')
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .returning('mode'),
);
