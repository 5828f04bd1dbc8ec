import { sql } from 'kysely';
import { followingAccounts } from '../platform/db/following-accounts.ts';
import type { Orm } from '../platform/db/orm.ts';
import { autocommitStatement } from '../platform/db/sql.ts';
import {
  type AfterEndpoint,
  afterEndpoint,
  type DeliveryKey,
  isLeaseOver,
  type KeyColumns,
  keyColumns,
  type QueuedEndpoint,
} from './deliveries.ts';

/** How many endpoints have a turn together. */
const ENDPOINTS = 8;
/** How many deliveries they share: few enough that nobody has to wait for their locks. */
const BATCH = 400;

/**
 * Parks events whose endpoint is disabled, and gives up those whose endpoint was deleted
 * (docs/partners/webhooks.md). If the endpoint has been enabled in the meantime, they become pending again.
 * It locks no account: what it parks as the endpoint is enabled or deleted, {@link unparkDeliveries} or
 * {@link giveUpDeliveries} finds.
 */
export async function parkDeliveries(orm: Orm, deliveries: readonly DeliveryKey[]): Promise<void> {
  await parkOrQueue(orm, keyColumns(deliveries));
}

// Row "parked" of the table in domain/event.ts. Written out: it joins the table it changes with its endpoint,
// which may be missing.
const parkOrQueue = autocommitStatement(
  (_, { eventIds, endpointIds }: KeyColumns) => sql`
  UPDATE delivery d SET lease_expires_at = '-infinity',
    status = CASE WHEN w.id IS NULL THEN 'given_up' WHEN w.status = 'disabled' THEN 'parked' ELSE 'pending' END,
    next_attempt_at = CASE WHEN w.status = 'enabled' THEN account_time(d.partner_id, d.mode, clock_timestamp()) END,
    workflow = CASE WHEN w.status IS DISTINCT FROM 'enabled' AND d.workflow = 'told' THEN 'untold' ELSE d.workflow END
  FROM unnest(${eventIds}::text[], ${endpointIds}::text[]) k (event_id, endpoint_id)
    LEFT JOIN webhook_endpoint w ON w.id = k.endpoint_id
  WHERE d.event_id = k.event_id AND d.endpoint_id = k.endpoint_id AND d.status <> 'delivered'`,
  { acrossTenants: 'queue' },
);

/** What a turn of a few endpoints has done. */
export interface EndpointsTurn {
  /** How many deliveries were changed. */
  changed: number;
  /** The endpoint to continue after; null if all of them have had their turn. */
  last: QueuedEndpoint | null;
}

type ServedEndpoint = QueuedEndpoint & { changed: number };

/**
 * Makes parked events of enabled endpoints pending, oldest first: a few of each endpoint in turn, so that one
 * with many delays no other.
 * @param after the endpoint to begin after; null: the first
 */
export const unparkDeliveries = (orm: Orm, after: QueuedEndpoint | null): Promise<EndpointsTurn> =>
  takeTurn(unpark, orm, after);

/**
 * Gives up what waits for endpoints that were deleted: a few of each in turn. What a relay has leased is left
 * to it.
 * @param after the endpoint to begin after; null: the first
 */
export const giveUpDeliveries = (orm: Orm, after: QueuedEndpoint | null): Promise<EndpointsTurn> =>
  takeTurn(giveUp, orm, after);

async function takeTurn(
  change: typeof unpark,
  orm: Orm,
  after: QueuedEndpoint | null,
): Promise<EndpointsTurn> {
  const served = await change(orm, afterEndpoint(after));
  return {
    changed: served.reduce((sum, { changed }) => sum + changed, 0),
    last: served.length < ENDPOINTS ? null : (served.at(-1) ?? null),
  };
}

// Row "unparked" of the table in domain/event.ts. Written out: it takes deliveries of several endpoints in
// turn, and locks them. The endpoint is looked up for one row at a time, or the planner might read all of the
// queue to join it.
const unpark = autocommitStatement(
  (_, values: AfterEndpoint) => sql<ServedEndpoint>`
  WITH RECURSIVE ${followingAccounts({
    table: 'delivery',
    account: ['partner_id', 'mode', 'endpoint_id'],
    isQueued: sql`status = 'parked'`,
    after: sql`${values.afterPartnerId}, ${values.afterMode}, ${values.afterEndpointId}`,
  })}, turn AS MATERIALIZED (
    SELECT partner_id, mode, endpoint_id FROM following f
    WHERE (SELECT status FROM webhook_endpoint WHERE id = f.endpoint_id) = 'enabled'
      LIMIT ${sql.lit(ENDPOINTS)}
  ), due AS MATERIALIZED (
    SELECT d.event_id, d.endpoint_id FROM turn t CROSS JOIN LATERAL (
      SELECT p.event_id, p.endpoint_id FROM delivery p
      WHERE p.status = 'parked' AND p.partner_id = t.partner_id AND p.mode = t.mode
        AND p.endpoint_id = t.endpoint_id
      ORDER BY p.event_id LIMIT ${sql.lit(BATCH)} / (SELECT count(*) FROM turn) FOR UPDATE SKIP LOCKED) d
  ), changed AS (
    UPDATE delivery d SET status = 'pending', schedule_attempts = 0, lease_expires_at = '-infinity',
      next_attempt_at = account_time(d.partner_id, d.mode, clock_timestamp())
    FROM due WHERE d.event_id = due.event_id AND d.endpoint_id = due.endpoint_id
    RETURNING d.endpoint_id
  )
  SELECT t.partner_id, t.mode, t.endpoint_id,
    (SELECT count(*)::int FROM changed c WHERE c.endpoint_id = t.endpoint_id) AS changed
  FROM turn t ORDER BY t.partner_id, t.mode, t.endpoint_id`,
  { acrossTenants: 'queue' },
);

// Row "deleted" of the table in domain/event.ts. Written out as the one above.
const giveUp = autocommitStatement(
  (_, values: AfterEndpoint) => sql<ServedEndpoint>`
  WITH RECURSIVE ${followingAccounts({
    table: 'delivery',
    account: ['partner_id', 'mode', 'endpoint_id'],
    isQueued: sql`status IN ('pending', 'retrying', 'parked')`,
    after: sql`${values.afterPartnerId}, ${values.afterMode}, ${values.afterEndpointId}`,
  })}, turn AS MATERIALIZED (
    SELECT partner_id, mode, endpoint_id FROM following f
    WHERE (SELECT id FROM webhook_endpoint WHERE id = f.endpoint_id) IS NULL LIMIT ${sql.lit(ENDPOINTS)}
  ), due AS MATERIALIZED (
    SELECT d.event_id, d.endpoint_id FROM turn t CROSS JOIN LATERAL (
      SELECT w.event_id, w.endpoint_id FROM delivery w
      WHERE w.status IN ('pending', 'retrying', 'parked') AND w.partner_id = t.partner_id AND w.mode = t.mode
        AND w.endpoint_id = t.endpoint_id
        AND (w.status <> 'pending' OR ${isLeaseOver('w')})
      LIMIT ${sql.lit(BATCH)} / (SELECT count(*) FROM turn) FOR UPDATE SKIP LOCKED) d
  ), changed AS (
    UPDATE delivery d SET status = 'given_up', next_attempt_at = NULL, lease_expires_at = '-infinity',
      workflow = CASE WHEN d.workflow = 'told' THEN 'untold' ELSE d.workflow END
    FROM due WHERE d.event_id = due.event_id AND d.endpoint_id = due.endpoint_id
    RETURNING d.endpoint_id
  )
  SELECT t.partner_id, t.mode, t.endpoint_id,
    (SELECT count(*)::int FROM changed c WHERE c.endpoint_id = t.endpoint_id) AS changed
  FROM turn t ORDER BY t.partner_id, t.mode, t.endpoint_id`,
  { acrossTenants: 'queue' },
);
