import type { Orm } from '../../db/orm.ts';
import { query } from '../../db/sql.ts';
import type { DeliveryStatus } from '../../domain/event.ts';
import type { TakenDelivery } from './take-deliveries.ts';

/** An event with its endpoint as it is now; undefined where the event has been pruned. */
export async function readDelivery(
  orm: Orm,
  eventId: string,
): Promise<(TakenDelivery & { status: DeliveryStatus }) | undefined> {
  const [delivery] = await query<TakenDelivery & { status: DeliveryStatus }>(
    orm.em.fork(),
    `SELECT d.event_id, d.partner_id, d.mode, d.status, e.type, e.body, w.url, w.status AS endpoint_status, w.standard_headers,
       w.secret, CASE WHEN w.previous_secret_expires_at > now() THEN w.previous_secret END AS previous_secret
     FROM delivery d JOIN event e ON e.id = d.event_id
       LEFT JOIN webhook_endpoint w ON w.partner_id = d.partner_id AND w.mode = d.mode
     WHERE d.event_id = $1`,
    [eventId],
  );
  return delivery;
}
