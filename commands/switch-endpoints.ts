import { ENDPOINT_COLUMNS } from '../db/endpoint-columns.ts';
import { query } from '../db/sql.ts';
import { transaction } from '../db/transaction.ts';
import type { Mode } from '../domain/mode.ts';
import type { WebhookEndpointRow } from '../domain/webhook-endpoint-resource.ts';
import { enableEndpoints } from './enable-endpoints.ts';
import { lockPartner } from './lock-partner.ts';
import { type Operator, recordAudit } from './operator-context.ts';

/**
 * Disables an account's endpoints by hand, or enables them and sends what was parked. One that is so already stays as
 * it is. @returns those there are
 * @throws Refusal where there is no such account.
 */
export function switchEndpoints(
  { orm, actor }: Operator,
  { partnerId, modes, status }: { partnerId: string; modes: readonly Mode[]; status: 'enabled' | 'disabled' },
): Promise<WebhookEndpointRow[]> {
  return transaction(orm, async (tx) => {
    await lockPartner(tx, partnerId);
    const changing = await query<{ mode: Mode }>(
      tx,
      `SELECT mode FROM webhook_endpoint WHERE partner_id = $1 AND mode = ANY ($2) AND status <> $3
       ORDER BY mode DESC FOR NO KEY UPDATE`,
      [partnerId, modes, status],
    );
    const changed = changing.map(({ mode }) => mode);
    if (status === 'enabled') await enableEndpoints(tx, partnerId, modes);
    else {
      await query(
        tx,
        `UPDATE webhook_endpoint SET status = 'disabled', disabled_reason = 'disabled by an operator'
         WHERE partner_id = $1 AND mode = ANY ($2)`,
        [partnerId, changed],
      );
    }
    if (changed.length > 0) {
      const verb = status === 'enabled' ? 'enable' : 'disable';
      recordAudit(tx, actor, `webhook-endpoint.${verb}`, partnerId, { modes: changed });
    }
    return query<WebhookEndpointRow>(
      tx,
      `SELECT ${ENDPOINT_COLUMNS} FROM webhook_endpoint WHERE partner_id = $1 AND mode = ANY ($2) ORDER BY mode DESC`,
      [partnerId, modes],
    );
  });
}
