import type { Orm } from '../../db/orm.ts';
import { query } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import { ApiError } from '../../domain/api-error.ts';
import { EVENTS_KEPT_DAYS } from '../../domain/event.ts';
import type { Tenant } from '../../domain/tenant.ts';
import { requeueEvents } from './requeue-events.ts';
import { takeSendingTurn } from './take-sending-turn.ts';

/**
 * Lets a partner have an event sent again, at most so often.
 * @throws ApiError `event_not_found`, `webhook_endpoint_not_found`, `invalid_state` (the endpoint is disabled), `rate_limited`
 */
export function queueResend(orm: Orm, tenant: Tenant, eventId: string): Promise<void> {
  return transaction(orm, async (tx) => {
    const [event] = await query(
      tx,
      `SELECT FROM event e
       WHERE e.id = $1 AND e.partner_id = $2 AND e.mode = $3 AND e.created_at > now() - $4 * interval '1 day'`,
      [eventId, tenant.partnerId, tenant.mode, EVENTS_KEPT_DAYS],
    );
    if (event === undefined) throw new ApiError('event_not_found');
    await takeSendingTurn(tx, tenant);
    await requeueEvents(tx, [eventId]);
  });
}
