import { sql } from 'kysely';
import type { Orm } from '../../db/orm.ts';
import { anyOf, type Transactor, writeStatement } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import type { AccountClock } from '../../domain/account-clock.ts';
import type { Mode, Tenant } from '../../domain/mode.ts';
import type { WebhookEndpointRow } from '../../resources/webhook-endpoint.ts';
import { type Operator, recordAudit } from '../accounts/operator-context.ts';
import { lockPartner } from '../accounts/partners.ts';
import type { DeliveryKey } from './deliveries.ts';
import { holdTestClock, writeEndpointEvent } from './endpoint-events.ts';
import { type EndpointId, readEndpoints, shownEndpointColumns } from './read-endpoints.ts';

type EndpointStatus = WebhookEndpointRow['status'];

/** Endpoints of one account. */
interface Endpoints {
  partnerId: string;
  modes: readonly Mode[];
  endpointIds: readonly string[];
}

/**
 * Disables an account's endpoints for an operator, or enables them and sends what was parked. An endpoint that already
 * has the status stays as it is.
 * @param request.endpointId null for all endpoints in these modes
 * @returns the endpoints
 * @throws Refusal if there is no such account
 */
export function switchEndpoints(
  { orm, actor }: Operator,
  request: { partnerId: string; modes: readonly Mode[]; endpointId: EndpointId; status: EndpointStatus },
): Promise<WebhookEndpointRow[]> {
  const { partnerId, modes, endpointId, status } = request;
  const readThem = async (tx: Transactor) => {
    const endpoints = await readEndpoints(tx, { partnerId, modes });
    return endpoints.filter(({ id }) => endpointId === null || id === endpointId);
  };
  return transaction(orm, async (tx) => {
    const testClock = await holdTestClock(tx, partnerId);
    await lockPartner(tx, partnerId);
    const endpoints = await readThem(tx);
    const endpointIds = endpoints.map(({ id }) => id);
    const changing = endpoints.filter((endpoint) => endpoint.status !== status);
    if (status === 'enabled') await enableEndpoints(tx, { partnerId, modes, endpointIds });
    else
      await disableEndpoints(tx, {
        partnerId,
        modes,
        endpointIds,
        reason: 'disabled by an operator',
        testClock,
      });
    if (changing.length > 0) {
      const verb = status === 'enabled' ? 'enable' : 'disable';
      recordAudit(tx, {
        actor,
        action: `webhook-endpoint.${verb}`,
        subject: partnerId,
        detail: {
          modes: [...new Set(changing.map(({ mode }) => mode))],
          endpoints: changing.map(({ id }) => id),
        },
      });
    }
    return readThem(tx);
  });
}

/**
 * Disables endpoints in the caller's transaction, and writes an event about each that was enabled. Their events are parked as
 * they become due.
 * @param endpoints.testClock from `holdTestClock`, before the transaction locked any row
 */
export async function disableEndpoints(
  tx: Transactor,
  endpoints: Endpoints & { reason: string; testClock: AccountClock },
): Promise<void> {
  for (const endpoint of await disable(tx, endpoints)) {
    await writeEndpointEvent(tx, 'webhook_endpoint.disabled', endpoint, endpoints.testClock);
  }
}

const disable = writeStatement(
  (db, { partnerId, modes, endpointIds, reason }: Endpoints & { reason: string }) =>
    db
      .updateTable('webhook_endpoint')
      .set({ status: 'disabled', disabled_reason: reason })
      .where('partner_id', '=', partnerId)
      .where('mode', '=', anyOf(modes))
      .where('id', '=', anyOf(endpointIds))
      .where('status', '=', 'enabled')
      .returning(shownEndpointColumns),
);

/**
 * Disables an endpoint that wants no more events. Its events are parked as they become due.
 * @param receiver.url where the response came from: if the endpoint has a different URL by now, it stays enabled
 */
export function disableEndpoint(
  orm: Orm,
  receiver: Tenant & { endpointId: string; url: string; reason: string },
): Promise<void> {
  return transaction(orm, async (tx) => {
    const testClock = await holdTestClock(tx, receiver.partnerId);
    for (const endpoint of await disableAt(tx, receiver)) {
      await writeEndpointEvent(tx, 'webhook_endpoint.disabled', endpoint, testClock);
    }
  });
}

const disableAt = writeStatement(
  (
    db,
    {
      partnerId,
      mode,
      endpointId,
      url,
      reason,
    }: Tenant & { endpointId: string; url: string; reason: string },
  ) =>
    db
      .updateTable('webhook_endpoint')
      .set({ status: 'disabled', disabled_reason: reason })
      .where('partner_id', '=', partnerId)
      .where('mode', '=', mode)
      .where('id', '=', endpointId)
      .where('url', '=', url)
      .where('status', '=', 'enabled')
      .returning(shownEndpointColumns),
);

/**
 * Enables endpoints and makes their parked events pending, in the caller's transaction, which holds the account's lock
 * (docs/partners/webhooks.md). The endpoints are written last, since the relay writes them, too, and should not wait.
 */
export async function enableEndpoints(tx: Transactor, endpoints: Endpoints): Promise<void> {
  await unpark(tx, endpoints);
  await enable(tx, endpoints);
}

const enable = writeStatement((db, { partnerId, modes, endpointIds }: Endpoints) =>
  db
    .updateTable('webhook_endpoint')
    .set({ status: 'enabled', disabled_reason: null })
    .where('partner_id', '=', partnerId)
    .where('mode', '=', anyOf(modes))
    .where('id', '=', anyOf(endpointIds))
    .where('status', '=', 'disabled'),
);

// Row "unparked" of the table in domain/event.ts.
const unpark = writeStatement((db, { partnerId, modes, endpointIds }: Endpoints) =>
  db
    .updateTable('delivery')
    .set(({ ref }) => ({
      status: 'pending',
      schedule_attempts: 0,
      lease_expires_at: '-infinity',
      next_attempt_at: sql<string>`account_time(${ref('partner_id')}, ${ref('mode')}, clock_timestamp())`,
    }))
    // A literal, so that the partial index of undelivered events can be used.
    .where('status', '=', sql.lit<'parked'>('parked'))
    .where('partner_id', '=', partnerId)
    .where('mode', '=', anyOf(modes))
    .where('endpoint_id', '=', anyOf(endpointIds)),
);

/**
 * Parks events whose endpoint is disabled, and gives up those whose endpoint was deleted (docs/partners/webhooks.md). If the
 * endpoint has been enabled in the meantime, they become pending again. The accounts stay locked until the commit, so that no
 * endpoint is enabled between the check and the parking.
 */
export function parkDeliveries(orm: Orm, deliveries: readonly DeliveryKey[]): Promise<void> {
  const eventIds = deliveries.map(({ eventId }) => eventId);
  const endpointIds = deliveries.map(({ endpointId }) => endpointId);
  return transaction(orm, async (tx) => {
    await lockAccounts(tx, { eventIds });
    await parkOrQueue(tx, { eventIds, endpointIds });
  });
}

const lockAccounts = writeStatement(
  (db, { eventIds }: { eventIds: readonly string[] }) =>
    db
      .selectFrom('partner')
      .select('id')
      .where('id', 'in', ({ selectFrom }) =>
        selectFrom('delivery')
          .select(({ ref }) => sql<string>`${ref('partner_id')} COLLATE "default"`.as('partner_id'))
          .where('event_id', '=', anyOf(eventIds)),
      )
      .orderBy('id')
      .forShare(),
  { acrossTenants: 'queue' },
);

// Row "parked" of the table in domain/event.ts. Written out: it joins the table it changes with its endpoint, which may be
// missing.
const parkOrQueue = writeStatement(
  (_, { eventIds, endpointIds }: { eventIds: readonly string[]; endpointIds: readonly string[] }) => sql`
  UPDATE delivery d SET lease_expires_at = '-infinity',
    status = CASE WHEN w.id IS NULL THEN 'given_up' WHEN w.status = 'disabled' THEN 'parked' ELSE 'pending' END,
    next_attempt_at = CASE WHEN w.status = 'enabled' THEN account_time(d.partner_id, d.mode, clock_timestamp()) END,
    workflow = CASE WHEN w.status IS DISTINCT FROM 'enabled' AND d.workflow = 'told' THEN 'untold' ELSE d.workflow END
  FROM unnest(${eventIds}::text[], ${endpointIds}::text[]) k (event_id, endpoint_id)
    LEFT JOIN webhook_endpoint w ON w.id = k.endpoint_id
  WHERE d.event_id = k.event_id AND d.endpoint_id = k.endpoint_id AND d.status <> 'delivered'`,
  { acrossTenants: 'queue' },
);
