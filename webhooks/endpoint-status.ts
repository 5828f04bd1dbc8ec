import { sql } from 'kysely';
import { holdClock } from '../accounts/clock.ts';
import { lockPartner } from '../accounts/partners.ts';
import type { AccountClock } from '../domain/account-clock.ts';
import type { Mode, Tenant } from '../domain/mode.ts';
import type { Orm } from '../platform/db/orm.ts';
import { anyOf, type Transactor, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import { type Operator, recordAudit } from '../requests/operator-context.ts';
import { writeEndpointEvent } from './endpoint-events.ts';
import type { WebhookEndpointRow } from './endpoint-resource.ts';
import { type EndpointId, readEndpoints, shownEndpointColumns } from './reads.ts';

type EndpointStatus = WebhookEndpointRow['status'];

/** Endpoints of one account. */
export interface Endpoints {
  partnerId: string;
  modes: readonly Mode[];
  endpointIds: readonly string[];
}

/**
 * Disables an account's endpoints for an operator, or enables them: within a second or so, a worker sends
 * what was parked. An endpoint that already has the status stays as it is.
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
    const testClock = await holdClock(tx, { partnerId, mode: 'test' });
    await lockPartner(tx, partnerId);
    const endpoints = await readThem(tx);
    const account = { partnerId, modes, endpointIds: endpoints.map(({ id }) => id) };
    const changing = endpoints.filter((endpoint) => endpoint.status !== status);
    if (status === 'enabled') await enableEndpoints(tx, account);
    else await disableEndpoints(tx, { ...account, reason: 'disabled by an operator', testClock });
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

/** The reason, as the partner sees it, of an endpoint that the partner has disabled. */
export const DISABLED_BY_PARTNER = 'you disabled it';

/**
 * Disables endpoints in the caller's transaction, and writes an event about each that was enabled. Their
 * events are parked as they become due.
 * @param endpoints.url only those that have this URL
 * @param endpoints.testClock from `holdClock`, before the transaction locked any row
 */
export async function disableEndpoints(
  tx: Transactor,
  endpoints: Endpoints & { url?: string; reason: string; testClock: AccountClock },
): Promise<void> {
  for (const endpoint of await disable(tx, { url: null, ...endpoints })) {
    await writeEndpointEvent(tx, 'webhook_endpoint.disabled', endpoint, endpoints.testClock);
  }
}

const disable = writeStatement(
  (db, { partnerId, modes, endpointIds, url, reason }: Endpoints & { url: string | null; reason: string }) =>
    db
      .updateTable('webhook_endpoint')
      .set({ status: 'disabled', disabled_reason: reason })
      .where('partner_id', '=', partnerId)
      .where('mode', '=', anyOf(modes))
      .where('id', '=', anyOf(endpointIds))
      .where('url', '=', sql<string>`coalesce(${url}::text, url)`)
      .where('status', '=', 'enabled')
      .returning(shownEndpointColumns),
);

/**
 * Disables an endpoint that wants no more events. Its events are parked as they become due.
 * @param receiver.url where the response came from: if the endpoint has a different URL by now, it stays
 * enabled
 */
export function disableEndpoint(
  orm: Orm,
  receiver: Tenant & { endpointId: string; url: string; reason: string },
): Promise<void> {
  const { partnerId, mode, endpointId, url, reason } = receiver;
  return transaction(orm, async (tx) => {
    const testClock = await holdClock(tx, { partnerId, mode: 'test' });
    const endpoints = { partnerId, modes: [mode], endpointIds: [endpointId] };
    await disableEndpoints(tx, { ...endpoints, url, reason, testClock });
  });
}

/**
 * Enables endpoints in the caller's transaction. What was parked for them is sent soon after: see
 * `unparkDeliveries`, for which the caller notifies the workers (docs/partners/webhooks.md).
 */
export const enableEndpoints = writeStatement((db, { partnerId, modes, endpointIds }: Endpoints) =>
  db
    .updateTable('webhook_endpoint')
    .set({ status: 'enabled', disabled_reason: null })
    .where('partner_id', '=', partnerId)
    .where('mode', '=', anyOf(modes))
    .where('id', '=', anyOf(endpointIds))
    .where('status', '=', 'disabled'),
);
