import type { Orm } from '../../db/orm.ts';
import { query } from '../../db/sql.ts';
import type { Tenant } from '../../domain/tenant.ts';

/**
 * Sends an endpoint nothing more until it is enabled again; its events are parked as they come up.
 * @param request.url only where it still is that: an answer of an address that was left says nothing about the new one.
 */
export async function disableEndpoint(
  orm: Orm,
  { partnerId, mode }: Tenant,
  { url, reason }: { url: string; reason: string },
): Promise<void> {
  await query(
    orm.em.fork(),
    `UPDATE webhook_endpoint SET status = 'disabled', disabled_reason = $4
     WHERE partner_id = $1 AND mode = $2 AND url = $3 AND status = 'enabled'`,
    [partnerId, mode, url, reason],
  );
}
