import { ENDPOINT_COLUMNS } from '../db/endpoint-columns.ts';
import { newId, timeOf } from '../db/new-id.ts';
import type { Orm } from '../db/orm.ts';
import { query } from '../db/sql.ts';
import type { Tenant } from '../db/tenant.ts';
import { transaction } from '../db/transaction.ts';
import type { EventType } from '../domain/event-type.ts';
import { presentWebhookEndpoint, type WebhookEndpointRow } from '../domain/webhook-endpoint-resource.ts';
import { takeSendingTurn } from './take-sending-turn.ts';

const TYPE: EventType = 'ping';

/**
 * Writes an event that says nothing but where it is sent, for the relay to send like any other.
 * @returns its id
 * @throws ApiError `webhook_endpoint_not_found`, `invalid_state` (the endpoint is disabled), `rate_limited`
 */
export function sendPing(orm: Orm, tenant: Tenant): Promise<string> {
  const { partnerId, mode } = tenant;
  return transaction(orm, async (tx) => {
    await takeSendingTurn(tx, tenant);
    const [endpoint] = await query<WebhookEndpointRow>(
      tx,
      `SELECT ${ENDPOINT_COLUMNS} FROM webhook_endpoint WHERE partner_id = $1 AND mode = $2`,
      [partnerId, mode],
    );
    const data = { webhook_endpoint: endpoint && presentWebhookEndpoint(endpoint) };
    const id = newId('evt');
    const created = timeOf(id).toISOString();
    await query(
      tx,
      'INSERT INTO event (id, partner_id, mode, type, body, created_at) VALUES ($1, $2, $3, $4, $5, $6)',
      [id, partnerId, mode, TYPE, JSON.stringify({ id, type: TYPE, created, mode, data }), created],
    );
    return id;
  });
}
