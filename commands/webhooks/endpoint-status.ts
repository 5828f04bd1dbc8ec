import { sql } from 'kysely';
import type { Orm } from '../../db/orm.ts';
import { anyOf, autocommitStatement, type Transactor, writeStatement } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import type { Mode, Tenant } from '../../domain/mode.ts';
import type { WebhookEndpointRow } from '../../resources/webhook-endpoint.ts';
import { type Operator, recordAudit } from '../accounts/operator-context.ts';
import { lockPartner } from '../accounts/partners.ts';
import { readEndpoints } from './read-endpoints.ts';

type EndpointStatus = WebhookEndpointRow['status'];

interface Endpoints {
  partnerId: string;
  modes: readonly Mode[];
}

/**
 * Disables an account's endpoints for an operator, or enables them and sends what was parked. An endpoint that already
 * has the status stays as it is.
 * @returns the endpoints in these modes
 * @throws Refusal if there is no such account
 */
export function switchEndpoints(
  { orm, actor }: Operator,
  { partnerId, modes, status }: Endpoints & { status: EndpointStatus },
): Promise<WebhookEndpointRow[]> {
  return transaction(orm, async (tx) => {
    await lockPartner(tx, partnerId);
    const changing = await lockOthers(tx, { partnerId, modes, status });
    const changed = changing.map(({ mode }) => mode);
    if (status === 'enabled') await enableEndpoints(tx, partnerId, modes);
    else await disable(tx, { partnerId, modes: changed });
    if (changed.length > 0) {
      const verb = status === 'enabled' ? 'enable' : 'disable';
      recordAudit(tx, {
        actor,
        action: `webhook-endpoint.${verb}`,
        subject: partnerId,
        detail: { modes: changed },
      });
    }
    return readEndpoints(tx, { partnerId, modes });
  });
}

const lockOthers = writeStatement(
  (db, { partnerId, modes, status }: Endpoints & { status: EndpointStatus }) =>
    db
      .selectFrom('webhook_endpoint')
      .select('mode')
      .where('partner_id', '=', partnerId)
      .where('mode', '=', anyOf(modes))
      .where('status', '<>', status)
      .orderBy('mode', 'desc')
      .forNoKeyUpdate(),
);

const disable = writeStatement((db, { partnerId, modes }: Endpoints) =>
  db
    .updateTable('webhook_endpoint')
    .set({ status: 'disabled', disabled_reason: 'disabled by an operator' })
    .where('partner_id', '=', partnerId)
    .where('mode', '=', anyOf(modes)),
);

/**
 * Disables an endpoint that wants no more events. Its events are parked as they become due.
 * @param receiver.url where the response came from: if the endpoint has a different URL by now, it stays enabled
 */
export const disableEndpoint = autocommitStatement(
  (db, { partnerId, mode, url, reason }: Tenant & { url: string; reason: string }) =>
    db
      .updateTable('webhook_endpoint')
      .set({ status: 'disabled', disabled_reason: reason })
      .where('partner_id', '=', partnerId)
      .where('mode', '=', mode)
      .where('url', '=', url)
      .where('status', '=', 'enabled'),
);

/**
 * Enables an account's endpoints and makes its parked events pending, in the caller's transaction, which holds the
 * account's lock (docs/partners/webhooks.md).
 */
export async function enableEndpoints(
  tx: Transactor,
  partnerId: string,
  modes: readonly Mode[],
): Promise<void> {
  await enable(tx, { partnerId, modes });
  await unpark(tx, { partnerId, modes });
}

const enable = writeStatement((db, { partnerId, modes }: Endpoints) =>
  db
    .updateTable('webhook_endpoint')
    .set({ status: 'enabled', disabled_reason: null })
    .where('partner_id', '=', partnerId)
    .where('mode', '=', anyOf(modes))
    .where('status', '=', 'disabled'),
);

// Row "unparked" of the table in domain/event.ts.
const unpark = writeStatement((db, { partnerId, modes }: Endpoints) =>
  db
    .updateTable('delivery')
    .set(({ ref }) => ({
      status: 'pending',
      schedule_attempts: 0,
      lease_expires_at: '-infinity',
      next_attempt_at: sql<string>`account_time(${ref('partner_id')}, ${ref('mode')}, clock_timestamp())`,
    }))
    // A literal, so that the partial index of waiting events can be used.
    .where('status', '=', sql.lit<'parked'>('parked'))
    .where('partner_id', '=', partnerId)
    .where('mode', 'in', ({ selectFrom }) =>
      selectFrom('webhook_endpoint')
        .select('mode')
        .where('partner_id', '=', partnerId)
        .where('mode', '=', anyOf(modes)),
    ),
);

/**
 * Parks events whose endpoint is disabled or deleted (docs/partners/webhooks.md). If the endpoint has been enabled or
 * created in the meantime, they become pending again. The accounts stay locked until the commit, so that no endpoint is
 * enabled between the check and the parking.
 */
export function parkDeliveries(orm: Orm, eventIds: readonly string[]): Promise<void> {
  return transaction(orm, async (tx) => {
    await lockAccounts(tx, { eventIds });
    await parkOrQueue(tx, { eventIds });
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
  (_, { eventIds }: { eventIds: readonly string[] }) => sql`
  UPDATE delivery d SET lease_expires_at = '-infinity',
    status = CASE WHEN w.status IS NULL THEN 'parked' ELSE 'pending' END,
    next_attempt_at = CASE WHEN w.status IS NOT NULL
      THEN account_time(d.partner_id, d.mode, clock_timestamp()) END,
    workflow = CASE WHEN w.status IS NULL AND d.workflow = 'told' THEN 'untold' ELSE d.workflow END
  FROM delivery k LEFT JOIN webhook_endpoint w
    ON w.partner_id = k.partner_id AND w.mode = k.mode AND w.status = 'enabled'
  WHERE k.event_id = ANY (${eventIds}) AND d.event_id = k.event_id AND d.status <> 'delivered'`,
  { acrossTenants: 'queue' },
);
