import { type RawBuilder, sql } from 'kysely';
import { ApiError } from '../domain/api-error.ts';
import { EVENTS_KEPT_DAYS } from '../domain/event.ts';
import type { Tenant } from '../domain/mode.ts';
import type { Tables } from '../platform/db/entities.ts';
import type { Orm } from '../platform/db/orm.ts';
import { type Reader, readStatement, type Transactor, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import { newEvent, writeEvent } from '../requests/event.ts';
import { recordAudit } from '../requests/operator-context.ts';
import { lockAllowance, takeFromAllowance } from './allowance.ts';
import { type DeliveryKey, giveEndpoint, type KeyColumns, keyColumns } from './deliveries.ts';
import { presentWebhookEndpoint } from './endpoint-resource.ts';
import { type EndpointId, endpointDisabled, readEndpoint } from './reads.ts';

/**
 * Sends one of a partner's events again at once, whatever its status, and restarts its retry schedule. The
 * relay makes the attempts, within the limits of the endpoints. An attempt that is being made is the first of
 * the new schedule.
 * @param endpointId where to; null for each endpoint that the event had a delivery for, or else those that
 * want it now
 * @throws ApiError `event_not_found` if it is too old, too; `webhook_endpoint_not_found`, `invalid_state`
 *   (the endpoints are disabled), `rate_limited`
 */
export function resendEvent(
  orm: Orm,
  tenant: Tenant,
  { eventId, endpointId }: { eventId: string; endpointId: EndpointId },
): Promise<void> {
  const { partnerId, mode } = tenant;
  return transaction(orm, async (tx) => {
    const [event] = await findEvent(tx, { partnerId, mode, eventId, keptDays: EVENTS_KEPT_DAYS });
    if (event === undefined) throw new ApiError('event_not_found');
    if (endpointId !== null) await readEndpoint(tx, tenant, endpointId);
    const allowance = await lockAllowance(tx, tenant);
    const { all, targets } = await findTargets(tx, tenant, { eventId, endpointId });
    if (all.length === 0) throw new ApiError('webhook_endpoint_not_found');
    if (targets.length === 0) {
      throw new ApiError('webhook_endpoint_not_found', {
        message: 'No webhook endpoint of this mode wants this event. Name one with endpoint_id.',
      });
    }
    const enabled = targets.filter(({ status }) => status === 'enabled');
    if (enabled.length === 0) throw endpointDisabled();
    await takeFromAllowance(tx, tenant, allowance);
    await makePending(
      tx,
      enabled.map(({ id }) => ({ eventId, endpointId: id })),
    );
  });
}

const findEvent = readStatement(
  (db, { partnerId, mode, eventId, keptDays }: Tenant & { eventId: string; keptDays: number }) =>
    db
      .selectFrom('event')
      .select('id')
      .where('id', '=', eventId)
      .where('partner_id', '=', partnerId)
      .where('mode', '=', mode)
      // By its id, which has the real time.
      .where('id', '>', sql<string>`'evt_' || id_time(now() - ${keptDays} * interval '1 day')`),
);

/**
 * @param endpointId to send it only there, even if it is not for that endpoint; null for each endpoint that
 * it had a delivery for, or else those that want it now
 * @returns `all` the account's endpoints, the oldest first, and those of them to send the event to
 */
export async function findTargets(
  em: Reader,
  { partnerId, mode }: Tenant,
  { eventId, endpointId }: { eventId: string; endpointId: EndpointId },
): Promise<{ all: Target[]; targets: Target[] }> {
  const all = await findEndpoints(em, { partnerId, mode, eventId });
  const had = all.filter(({ had_delivery }) => had_delivery);
  const wanting = had.length > 0 ? had : all.filter(({ wants }) => wants);
  return { all, targets: endpointId === null ? wanting : all.filter(({ id }) => id === endpointId) };
}

interface Target {
  id: string;
  status: 'enabled' | 'disabled';
  had_delivery: boolean;
  wants: boolean;
}

const findEndpoints = readStatement(
  (_, { partnerId, mode, eventId }: Tenant & { eventId: string }) => sql<Target>`
  SELECT w.id, w.status,
    EXISTS (SELECT FROM delivery d WHERE d.event_id = e.id AND d.endpoint_id = w.id
      AND d.partner_id = ${partnerId} AND d.mode = ${mode}) AS had_delivery,
    wants_event(w.event_types, e.type, e.only_endpoint_id, e.except_endpoint_id, w.id) AS wants
  FROM webhook_endpoint w JOIN event e ON e.id = ${eventId}
    AND e.partner_id = ${partnerId} AND e.mode = ${mode}
  WHERE w.partner_id = ${partnerId} AND w.mode = ${mode}
  ORDER BY w.id`,
);

/**
 * Sends deliveries again for an operator, like {@link resendEvent}. An event that was not for the endpoint
 * gets a delivery there.
 * @param request.audit null if an earlier call has recorded the whole request
 */
export function requeueDeliveries(
  orm: Orm,
  deliveries: readonly DeliveryKey[],
  { actor, audit }: { actor: string; audit: { subject: string; detail: Record<string, unknown> } | null },
): Promise<void> {
  return transaction(orm, async (tx) => {
    if (audit !== null) {
      const { subject, detail } = audit;
      recordAudit(tx, { actor, action: 'webhook.requeue', subject, detail });
    }
    await makePending(tx, deliveries);
  });
}

/**
 * Sends an event again because its workflow got the signal to, and notifies the workflow of the result.
 * @param sentBy whom Temporal recorded as the signal's sender
 * @returns whether there is such a delivery; old ones are pruned
 */
export function requeueForWorkflow(orm: Orm, delivery: DeliveryKey, sentBy: string | null): Promise<boolean> {
  return transaction(orm, async (tx) => {
    const found = await requeue(tx, delivery);
    for (const { event_id } of found) {
      recordAudit(tx, {
        actor: 'temporal',
        action: 'webhook.requeue',
        subject: event_id,
        detail: { identity: sentBy, endpoint: delivery.endpointId },
      });
    }
    return found.length > 0;
  });
}

/** This value, or the column as it is if the event is pending. */
const unlessPending = <Value>(column: keyof Tables['delivery'], value: RawBuilder<Value>) =>
  sql<Value>`CASE WHEN status = 'pending' THEN ${sql.ref(column)} ELSE ${value} END`;

// Row "requeued" of the table in domain/event.ts.
const requeue = writeStatement(
  (db, { eventId, endpointId }: DeliveryKey) =>
    db
      .updateTable('delivery')
      .set({
        status: 'pending',
        schedule_attempts: 0,
        lease_expires_at: unlessPending('lease_expires_at', sql<string>`'-infinity'`),
        next_attempt_at: unlessPending(
          'next_attempt_at',
          sql<string>`account_time(partner_id, mode, clock_timestamp())`,
        ),
        workflow: 'told',
        replayed: false,
      })
      .where('event_id', '=', eventId)
      .where('endpoint_id', '=', endpointId)
      .returning('event_id'),
  { acrossTenants: 'id' },
);

/**
 * Makes these deliveries pending in the caller's transaction. Each event and endpoint is of the same account.
 */
async function makePending(tx: Transactor, deliveries: readonly DeliveryKey[]): Promise<void> {
  const keys = keyColumns(deliveries);
  await giveEndpoint(tx, keys);
  await queue(tx, keys);
}

// Row "requeued" of the table in domain/event.ts. Written out: there may be a row for each endpoint or not.
const queue = writeStatement(
  (_, { eventIds, endpointIds }: KeyColumns) => sql`
  INSERT INTO delivery AS d (event_id, endpoint_id, partner_id, mode, type, status, next_attempt_at)
  SELECT e.id, k.endpoint_id, e.partner_id, e.mode, e.type, 'pending',
    account_time(e.partner_id, e.mode, clock_timestamp())
  FROM unnest(${eventIds}::text[], ${endpointIds}::text[]) k (event_id, endpoint_id)
    JOIN event e ON e.id = k.event_id
  ORDER BY e.id, k.endpoint_id
  ON CONFLICT (event_id, endpoint_id) DO UPDATE SET status = 'pending',
    schedule_attempts = 0,
    lease_expires_at = CASE WHEN d.status = 'pending' THEN d.lease_expires_at ELSE '-infinity' END,
    next_attempt_at = CASE WHEN d.status = 'pending' THEN d.next_attempt_at ELSE excluded.next_attempt_at END,
    replayed = false`,
  { acrossTenants: 'id' },
);

/**
 * Writes an event that shows where it is sent, which the relay sends to that endpoint like any other.
 * @param endpointId null for the oldest endpoint
 * @returns its id
 * @throws ApiError `webhook_endpoint_not_found`, `invalid_state` (the endpoint is disabled), `rate_limited`
 */
export function sendPing(orm: Orm, tenant: Tenant, endpointId: EndpointId): Promise<string> {
  return transaction(orm, async (tx) => {
    const allowance = await lockAllowance(tx, tenant);
    const endpoint = await readEndpoint(tx, tenant, endpointId);
    if (endpoint.status === 'disabled') throw endpointDisabled();
    await takeFromAllowance(tx, tenant, allowance);
    const data = { webhook_endpoint: presentWebhookEndpoint(endpoint) };
    const event = newEvent({ type: 'ping', mode: tenant.mode, data, clock: allowance.clock });
    await writeEvent(tx, tenant, { ...event, only_endpoint_id: endpoint.id });
    return event.id;
  });
}
