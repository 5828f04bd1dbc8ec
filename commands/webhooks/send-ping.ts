import { newId, timeOf } from '../../crypto/new-id.ts';
import type { Orm } from '../../db/orm.ts';
import { writeStatement } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import type { EventType } from '../../domain/event.ts';
import type { Tenant } from '../../domain/tenant.ts';
import { presentWebhookEndpoint } from '../../resources/webhook-endpoint.ts';
import { readEndpoints } from './read-endpoints.ts';
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
    const [endpoint] = await readEndpoints(tx, partnerId, [mode]);
    const data = { webhook_endpoint: endpoint && presentWebhookEndpoint(endpoint) };
    const id = newId('evt');
    const created = timeOf(id).toISOString();
    await insertPing(tx, {
      partnerId,
      mode,
      id,
      created,
      body: JSON.stringify({ id, type: TYPE, created, mode, data }),
    });
    return id;
  });
}

const insertPing = writeStatement(
  (db, { partnerId, mode, id, created, body }: Tenant & { id: string; created: string; body: string }) =>
    db.insertInto('event').values({ id, partner_id: partnerId, mode, type: TYPE, body, created_at: created }),
);
