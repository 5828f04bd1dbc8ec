import type { Orm } from '../db/orm.ts';
import { query } from '../db/sql.ts';
import type { Tenant } from '../db/tenant.ts';
import { transaction } from '../db/transaction.ts';
import { ApiError } from '../domain/api-error.ts';
import type { DeliveryStatus } from '../domain/delivery-status.ts';
import { EVENTS_KEPT_DAYS } from '../domain/event-resource.ts';
import type { EventType } from '../domain/event-type.ts';
import { handToRelay } from './hand-to-relay.ts';
import { takeSendingTurn } from './take-sending-turn.ts';

/** An event that is to be sent again, as it was before. */
export interface ResentEvent {
  type: EventType;
  status: DeliveryStatus;
  attempt_count: number;
}

/**
 * Lets a partner have an event sent again, at most so often. One that no workflow has goes back to the relay; one that
 * is given up or waits for its next attempt takes the signal `requeue` as well, which is the caller's to send.
 * @throws ApiError `event_not_found`, `webhook_endpoint_not_found`, `invalid_state` (the endpoint is disabled), `rate_limited`
 */
export function queueResend(orm: Orm, tenant: Tenant, eventId: string): Promise<ResentEvent> {
  return transaction(orm, async (tx) => {
    const [event] = await query<ResentEvent>(
      tx,
      `SELECT e.type, d.status, d.attempt_count FROM event e JOIN delivery d ON d.event_id = e.id
       WHERE e.id = $1 AND e.partner_id = $2 AND e.mode = $3 AND e.created_at > now() - $4 * interval '1 day'`,
      [eventId, tenant.partnerId, tenant.mode, EVENTS_KEPT_DAYS],
    );
    if (event === undefined) throw new ApiError('event_not_found');
    await takeSendingTurn(tx, tenant);
    await handToRelay(tx, [eventId]);
    return event;
  });
}
