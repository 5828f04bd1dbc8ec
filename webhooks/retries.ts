import { sql } from 'kysely';
import { accountsNow } from '../accounts/clock.ts';
import type { DeliveryStatus } from '../domain/event.ts';
import type { Row } from '../platform/db/entities.ts';
import { followingAccounts } from '../platform/db/following-accounts.ts';
import type { Orm } from '../platform/db/orm.ts';
import { ASYNCHRONOUS_COMMIT, autocommitStatement, readStatement } from '../platform/db/sql.ts';
import { tokenBucket } from '../platform/db/token-bucket.ts';
import {
  type AfterEndpoint,
  afterEndpoint,
  type DeliveryKey,
  isLeaseOver,
  type KeyColumns,
  type QueuedEndpoint,
} from './deliveries.ts';

/**
 * How many workflows of an endpoint can be notified at once; with one more every 62.5 ms, at most 20 in any
 * second.
 */
const MAX_AT_ONCE = 4;
const ALLOWANCE = tokenBucket('w.workflows_full_at', { size: MAX_AT_ONCE, perSecond: 16 });
/** How many endpoints have a turn together. */
const ENDPOINTS = 8;
/** Longer than it takes to notify a workflow. */
const LEASE_SECONDS = 15;
/** How many rows a sweep locks at once: few enough that nobody has to wait. */
const BATCH = 500;
/** How late a workflow may be before its event is sent without it. */
const WORKFLOW_GRACE = '2 minutes';

/** The state of a delivery that its workflow has to be informed of. */
export interface UnnotifiedDelivery
  extends Row<'delivery', 'event_id' | 'endpoint_id' | 'partner_id' | 'mode' | 'type' | 'attempt_count'> {
  status: Exclude<DeliveryStatus, 'pending' | 'no_endpoint'>;
  /** Whether the endpoint was deleted: then the workflow has nothing to wait for. */
  is_endpoint_deleted: boolean;
  next_attempt_in_ms: number;
  /** The last attempt's. */
  error: string | null;
}

/**
 * Leases deliveries whose workflows have to be notified of their state: a few of each endpoint in turn,
 * oldest first, and never more than the endpoint's allowance, so that one whose events all fail delays nobody
 * else.
 * @param after the endpoint to begin after; null: the first
 * @returns `last`: the endpoint to continue after; null if all of them have had their turn.
 * `isAllowanceUsed`: some have more to be notified of than they are allowed
 */
export async function takeUnnotifiedDeliveries(
  orm: Orm,
  after: QueuedEndpoint | null,
): Promise<{ unnotified: UnnotifiedDelivery[]; last: QueuedEndpoint | null; isAllowanceUsed: boolean }> {
  const rows = await take(orm, afterEndpoint(after));
  const endpoints = new Set(rows.map(({ endpoint_id }) => endpoint_id));
  const leased = rows.filter((row): row is LeasedDelivery => row.event_id !== null);
  const attempts =
    leased.length === 0
      ? []
      : await findErrors(orm.em.fork(), {
          eventIds: leased.map(({ event_id }) => event_id),
          endpointIds: leased.map(({ endpoint_id }) => endpoint_id),
          numbers: leased.map(({ attempt_count }) => attempt_count),
        });
  const errorOf = ({ event_id, endpoint_id }: LeasedDelivery) =>
    attempts.find((attempt) => attempt.event_id === event_id && attempt.endpoint_id === endpoint_id)?.error;
  return {
    unnotified: leased.map((delivery) => ({ ...delivery, error: errorOf(delivery) ?? null })),
    last: endpoints.size < ENDPOINTS ? null : (rows.at(-1) ?? null),
    isAllowanceUsed: rows.length > leased.length,
  };
}

/** An endpoint that had its turn, with one of its deliveries if it has any. */
type Taken = { [K in keyof LeasedDelivery]: LeasedDelivery[K] | null } & QueuedEndpoint;

type LeasedDelivery = Omit<UnnotifiedDelivery, 'error'>;

// A statement of its own: PostgreSQL 18 can crash if a statement that locks rows, which others change at the
// same moment, also reads a partitioned table.
const findErrors = readStatement(
  (_, values: KeyColumns & { numbers: readonly number[] }) => sql<
    Row<'delivery_attempt', 'event_id' | 'endpoint_id' | 'error'>
  >`
  SELECT t.event_id, t.endpoint_id, t.error
  FROM unnest(${values.eventIds}::text[], ${values.endpointIds}::text[], ${values.numbers}::int[])
      k (event_id, endpoint_id, number)
    JOIN delivery_attempt t ON t.event_id = k.event_id AND t.endpoint_id = k.endpoint_id
      AND t.number = k.number`,
);

// Written out: it takes deliveries of several endpoints in turn, and locks and writes rows of two tables. The
// endpoint's row has the allowance and is locked meanwhile: one that another process is serving is skipped.
// If the endpoint is gone, nothing new fails, so what is left needs no other limit than that of a turn.
const take = autocommitStatement(
  (_, values: AfterEndpoint) => sql<Taken>`
  WITH RECURSIVE ${ASYNCHRONOUS_COMMIT}, ${followingAccounts({
    table: 'delivery',
    account: ['partner_id', 'mode', 'endpoint_id'],
    isQueued: sql`workflow = 'untold' AND status <> 'pending'`,
    after: sql`${values.afterPartnerId}, ${values.afterMode}, ${values.afterEndpointId}`,
  })}, turn AS MATERIALIZED (
    SELECT partner_id, mode, endpoint_id FROM following LIMIT ${sql.lit(ENDPOINTS)}
  ), endpoint AS MATERIALIZED (
    SELECT w.id, ${ALLOWANCE.left} AS allowance
    FROM webhook_endpoint w WHERE w.id IN (SELECT endpoint_id FROM turn)
    FOR NO KEY UPDATE SKIP LOCKED
  ), allowed AS (
    SELECT t.*, w.id IS NULL AS is_endpoint_deleted, CASE
      WHEN w.id IS NOT NULL THEN greatest(0, coalesce(e.allowance, 0)) ELSE ${sql.lit(MAX_AT_ONCE)} END AS allowance
    FROM turn t LEFT JOIN webhook_endpoint w ON w.id = t.endpoint_id LEFT
      JOIN endpoint e ON e.id = t.endpoint_id
  ), due AS MATERIALIZED (
    SELECT d.* FROM allowed a CROSS JOIN LATERAL (
      SELECT u.event_id, u.endpoint_id FROM delivery u
      WHERE u.workflow = 'untold' AND u.status <> 'pending'
        AND u.partner_id = a.partner_id AND u.mode = a.mode
        AND u.endpoint_id = a.endpoint_id AND ${isLeaseOver('u')}
      ORDER BY u.event_id LIMIT a.allowance::bigint FOR UPDATE SKIP LOCKED) d
  ), leased AS (
    UPDATE delivery d SET lease_expires_at = clock_timestamp() + ${sql.lit(LEASE_SECONDS)} * interval '1 second'
    FROM due WHERE d.event_id = due.event_id AND d.endpoint_id = due.endpoint_id
    RETURNING d.event_id, d.endpoint_id, d.type, d.status, d.attempt_count, d.next_attempt_at
  ), spent AS (
    UPDATE webhook_endpoint w SET workflows_full_at = ${ALLOWANCE.afterTaking(sql.ref('taken.count'))}
    FROM (SELECT endpoint_id, count(*) FROM leased GROUP BY endpoint_id) taken
    WHERE w.id = taken.endpoint_id
  )
  SELECT a.partner_id, a.mode, a.endpoint_id, a.is_endpoint_deleted, l.event_id, l.type,
    l.status, l.attempt_count,
    greatest(0, extract(epoch FROM l.next_attempt_at - account_time(a.partner_id, a.mode, clock_timestamp())) * 1000)::float8
      AS next_attempt_in_ms
  FROM asynchronous_commit, allowed a LEFT JOIN leased l ON l.endpoint_id = a.endpoint_id
  ORDER BY a.partner_id, a.mode, a.endpoint_id, l.event_id`,
  { acrossTenants: 'queue' },
);

/**
 * Records that a workflow was notified of this state, unless the state has changed since: then it has to be
 * notified again.
 */
export async function markDeliveryNotified(orm: Orm, delivery: UnnotifiedDelivery): Promise<void> {
  const { event_id: eventId, endpoint_id: endpointId, status, attempt_count: attemptCount } = delivery;
  await mark(orm, { eventId, endpointId, status, attemptCount });
}

// Row "notified" of the table in domain/event.ts.
const mark = autocommitStatement(
  (
    db,
    {
      eventId,
      endpointId,
      status,
      attemptCount,
    }: DeliveryKey & { status: DeliveryStatus; attemptCount: number },
  ) =>
    db
      .updateTable('delivery')
      .set({
        workflow: sql<
          'told' | 'none'
        >`CASE WHEN status IN ('retrying', 'given_up') THEN 'told' ELSE 'none' END`,
        lease_expires_at: '-infinity',
      })
      .where('event_id', '=', eventId)
      .where('endpoint_id', '=', endpointId)
      .where('status', '=', status)
      .where('attempt_count', '=', attemptCount),
  { acrossTenants: 'queue' },
);

/**
 * Makes an event pending when its workflow says that its next attempt is due. A delivery that has moved on
 * without its workflow stays as it is, and the workflow is informed of its state.
 * @param attemptCount how many attempts the workflow knows about
 * @returns whether there is such a delivery; old ones are pruned
 */
export async function queueRetry(orm: Orm, delivery: DeliveryKey, attemptCount: number): Promise<boolean> {
  const found = await queueIfDue(orm, { ...delivery, attemptCount });
  return found.length > 0;
}

// Row "due" of the table in domain/event.ts. A pending event's workflow is notified of the next attempt
// anyway.
const queueIfDue = autocommitStatement(
  (_, { eventId, endpointId, attemptCount }: DeliveryKey & { attemptCount: number }) => sql<{
    event_id: string;
  }>`
  UPDATE delivery d SET
    status = CASE WHEN is_due THEN 'pending' ELSE status END,
    lease_expires_at = CASE WHEN status = 'pending' THEN lease_expires_at ELSE '-infinity' END,
    workflow = CASE WHEN is_due OR status = 'pending' THEN 'told' ELSE 'untold' END
  FROM (
    SELECT event_id, endpoint_id, status = 'retrying' AND attempt_count = ${attemptCount} AS is_due
    FROM delivery
    WHERE event_id = ${eventId} AND endpoint_id = ${endpointId}
    FOR UPDATE
  ) known
  WHERE d.event_id = known.event_id AND d.endpoint_id = known.endpoint_id
  RETURNING d.event_id`,
  { acrossTenants: 'queue' },
);

/**
 * Makes events pending whose next attempt is due although no workflow has said so: at once if there is no
 * workflow yet (Temporal is down, or the endpoint has more to start than its allowance), and after two
 * minutes if the workflow is late or gone. In test mode also those that are due by their account's clock, if
 * that was ever advanced.
 * @returns how many of each
 */
export async function queueDueRetries(orm: Orm): Promise<{ overdue: number; byClock: number }> {
  const total = { overdue: 0, byClock: 0 };
  for (;;) {
    const queued = await queueDue(orm, {});
    const byClock = queued.filter(({ by_clock }) => by_clock).length;
    total.byClock += byClock;
    total.overdue += queued.length - byClock;
    if (queued.length < BATCH) return total;
  }
}

// Row "overdue" of the table in domain/event.ts.
const queueDue = autocommitStatement(
  () => sql<{ by_clock: boolean }>`
  WITH RECURSIVE ${followingAccounts({
    table: 'delivery',
    account: ['partner_id', 'mode'],
    isQueued: sql`status = 'retrying' AND mode = 'test'`,
    after: sql`'', ''`,
  })}, clocked AS MATERIALIZED (
    SELECT t.* FROM ${accountsNow(sql`SELECT partner_id, mode FROM following`)} t
    WHERE EXISTS (SELECT FROM test_clock_advance c WHERE c.partner_id = t.partner_id)
  ), due AS MATERIALIZED (
    SELECT event_id, endpoint_id, false AS by_clock FROM (
      SELECT event_id, endpoint_id FROM delivery
      WHERE status = 'retrying' AND next_attempt_at <= clock_timestamp()
        AND (workflow = 'untold' OR next_attempt_at <= clock_timestamp() - ${sql.lit(WORKFLOW_GRACE)}::interval)
      ORDER BY next_attempt_at LIMIT ${sql.lit(BATCH)} FOR UPDATE SKIP LOCKED) overdue
    UNION ALL
    SELECT d.event_id, d.endpoint_id, true FROM clocked a CROSS JOIN LATERAL (
      SELECT u.event_id, u.endpoint_id FROM delivery u
      WHERE u.status = 'retrying' AND u.mode = 'test' AND u.partner_id = a.partner_id AND u.mode = a.mode
        AND u.next_attempt_at <= a.now
      ORDER BY u.next_attempt_at LIMIT ${sql.lit(BATCH)} FOR UPDATE SKIP LOCKED) d
  )
  UPDATE delivery d SET status = 'pending', lease_expires_at = '-infinity'
  FROM due WHERE d.event_id = due.event_id AND d.endpoint_id = due.endpoint_id
  RETURNING due.by_clock`,
  { acrossTenants: 'queue' },
);
