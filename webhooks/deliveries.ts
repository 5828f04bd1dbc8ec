import { sql } from 'kysely';
import type { Row } from '../platform/db/entities.ts';
import { followingAccounts } from '../platform/db/following-accounts.ts';
import { hasPassed } from '../platform/db/has-passed.ts';
import type { Orm } from '../platform/db/orm.ts';
import {
  ASYNCHRONOUS_COMMIT,
  anyOf,
  autocommitStatement,
  readStatement,
  writeStatement,
} from '../platform/db/sql.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { FAILING_AFTER } from './endpoint-events.ts';
import { sealAnswerStart } from './secrets.ts';

/** Names a delivery: an event and one of its account's endpoints. */
export interface DeliveryKey {
  eventId: string;
  endpointId: string;
}

/** The keys of deliveries by column, as statements take them. */
export interface KeyColumns {
  eventIds: readonly string[];
  endpointIds: readonly string[];
}

export const keyColumns = (deliveries: readonly DeliveryKey[]): KeyColumns => ({
  eventIds: deliveries.map(({ eventId }) => eventId),
  endpointIds: deliveries.map(({ endpointId }) => endpointId),
});

/** Whether nobody works on the delivery with this alias. Leases are shorter than five minutes. */
export const isLeaseOver = (delivery: string) => hasPassed(`${delivery}.lease_expires_at`, 300_000);

/** An endpoint in the order in which the queues take turns. */
export type QueuedEndpoint = Row<'delivery', 'partner_id' | 'mode' | 'endpoint_id'>;

/** The endpoint that a queue's next turn begins after. */
export type AfterEndpoint = ReturnType<typeof afterEndpoint>;

/** @param after null: the turn begins with the first endpoint */
export const afterEndpoint = (after: QueuedEndpoint | null) => ({
  afterPartnerId: after?.partner_id ?? '',
  afterMode: after?.mode ?? '',
  afterEndpointId: after?.endpoint_id ?? '',
});

/** An event to send to an endpoint, with the endpoint's current state. */
export interface Delivery
  extends Row<
      'delivery',
      'event_id' | 'endpoint_id' | 'partner_id' | 'mode' | 'schedule_attempts' | 'replayed'
    >,
    Row<'webhook_endpoint', 'standard_headers' | 'secret' | 'previous_secret'> {
  /** Null if the event is no longer kept. */
  body: string | null;
  /** Null if the endpoint was deleted; its other columns are then null as well. */
  url: string | null;
  endpoint_status: 'enabled' | 'disabled' | null;
}

/**
 * Leases pending events for the caller to send, oldest first for each endpoint, as many as it has free slots
 * and `limit` in all: one endpoint's backlog takes nobody else's slots. Replayed events come last, and have
 * few of the slots.
 * @param request.freeSlots by the endpoint's id
 * @param request.initialSlots of endpoints that `freeSlots` does not have
 * @param request.freeReplaySlots how many of them replayed events may have, by the endpoint's id
 * @param request.replaySlots of endpoints that `freeReplaySlots` does not have
 * @param request.after the endpoint to begin after, so that the same ones don't always fill the limit; null:
 * the first
 */
export async function takeDeliveries(
  orm: Orm,
  request: {
    freeSlots: Record<string, number>;
    initialSlots: number;
    freeReplaySlots: Record<string, number>;
    replaySlots: number;
    limit: number;
    leaseMs: number;
    after: QueuedEndpoint | null;
  },
): Promise<Delivery[]> {
  const { freeSlots, initialSlots, freeReplaySlots, replaySlots, limit, leaseMs, after } = request;
  const leased = await take(orm, {
    ...afterEndpoint(after),
    freeSlots: JSON.stringify(freeSlots),
    initialSlots,
    freeReplaySlots: JSON.stringify(freeReplaySlots),
    replaySlots,
    limit,
    leaseMs,
  });
  if (leased.length === 0) return [];
  const eventIds = leased.map(({ event_id }) => event_id);
  const read = () => readBodies(orm.em.fork(), { eventIds });
  // Once more, or all of them would rest until their leases expire.
  const events = await read().catch(read);
  const bodies = new Map(events.map(({ id, body }) => [id, body]));
  return leased.map((delivery) => ({ ...delivery, body: bodies.get(delivery.event_id) ?? null }));
}

interface TakeValues extends AfterEndpoint {
  freeSlots: string;
  initialSlots: number;
  freeReplaySlots: string;
  replaySlots: number;
  limit: number;
  leaseMs: number;
}

// A statement of its own: see findErrors in retries.ts.
const readBodies = readStatement(
  (db, { eventIds }: { eventIds: readonly string[] }) =>
    db.selectFrom('event').select(['id', 'body']).where('id', '=', anyOf(eventIds)),
  { acrossTenants: 'queue' },
);

// Written out, because it takes events of all endpoints in turn, and locks and leases rows of each.
const take = autocommitStatement(
  (_, values: TakeValues) => sql<Omit<Delivery, 'body'>>`
  WITH RECURSIVE ${ASYNCHRONOUS_COMMIT}, ${followingAccounts({
    table: 'delivery',
    account: ['partner_id', 'mode', 'endpoint_id'],
    isQueued: sql`status = 'pending'`,
    after: sql`${values.afterPartnerId}, ${values.afterMode}, ${values.afterEndpointId}`,
  })}, due AS MATERIALIZED (
    SELECT d.event_id, d.endpoint_id
    FROM following a
      CROSS JOIN LATERAL (
        SELECT coalesce((${values.freeSlots}::jsonb ->> a.endpoint_id)::int, ${values.initialSlots}) AS free,
          coalesce((${values.freeReplaySlots}::jsonb ->> a.endpoint_id)::int,
          ${values.replaySlots}) AS free_for_replays) s
      CROSS JOIN LATERAL (
        SELECT q.event_id, q.endpoint_id FROM (
          SELECT live.* FROM (
            SELECT p.event_id, p.endpoint_id FROM delivery p
            WHERE p.status = 'pending' AND p.partner_id = a.partner_id AND p.mode = a.mode
              AND p.endpoint_id = a.endpoint_id
              AND NOT p.replayed AND ${isLeaseOver('p')}
            ORDER BY p.event_id LIMIT s.free FOR UPDATE SKIP LOCKED) live
          UNION ALL
          SELECT replayed.* FROM (
            SELECT p.event_id, p.endpoint_id FROM delivery p
            WHERE p.status = 'pending' AND p.partner_id = a.partner_id AND p.mode = a.mode
              AND p.endpoint_id = a.endpoint_id
              AND p.replayed AND ${isLeaseOver('p')}
            ORDER BY p.event_id LIMIT s.free_for_replays FOR UPDATE SKIP LOCKED) replayed) q
        LIMIT s.free) d
    LIMIT ${values.limit}
  ), leased AS (
    UPDATE delivery d SET lease_expires_at = clock_timestamp() + ${values.leaseMs} * interval '1 millisecond'
    FROM due WHERE d.event_id = due.event_id AND d.endpoint_id = due.endpoint_id
    RETURNING d.event_id, d.endpoint_id, d.partner_id, d.mode, d.schedule_attempts,
      d.replayed
  )
  SELECT l.event_id, l.endpoint_id, l.partner_id, l.mode, l.schedule_attempts, l.replayed, w.url,
    w.status AS endpoint_status, w.standard_headers, w.secret,
    CASE WHEN w.previous_secret_expires_at > account_now(w.partner_id, w.mode) THEN w.previous_secret END AS previous_secret
  FROM asynchronous_commit, leased l
    LEFT JOIN webhook_endpoint w ON w.partner_id = l.partner_id AND w.mode = l.mode AND w.id = l.endpoint_id
  ORDER BY l.partner_id, l.mode, l.endpoint_id, l.event_id`,
  { acrossTenants: 'queue' },
);

/** One attempt to send an event to an endpoint. */
export interface Attempt extends DeliveryKey {
  startedAt: Date;
  durationMs: number;
  httpStatus: number | null;
  /** A short code; null if the event was delivered. */
  error: string | null;
  /** The start of the response to a failed attempt; it is stored sealed. */
  answerStart: string | null;
  /** Whether the receiver wants no more events: this one is to be parked next. */
  isGone: boolean;
}

/**
 * Records attempts in one statement, and counts them in the health of their endpoints. They are in the order in
 * which they ended. Of two of a delivery, whose lease ran out before the first was recorded, a success counts.
 * Their workflows are informed elsewhere. An event that was delivered stays delivered, whatever the result of a
 * concurrent attempt. If it was sent again on request during the attempt, that was the first of a new schedule.
 * A crash of PostgreSQL may lose the record; the event is then sent again.
 * @param delaysMs how long to wait after each failed attempt of a schedule
 * @param maxLockMs how long to wait for a row that somebody holds
 */
export async function recordAttempts(
  { orm, ring }: CommandContext,
  attempts: readonly Attempt[],
  delaysMs: readonly number[],
  maxLockMs: number,
): Promise<void> {
  await record(orm, {
    delaysMs,
    maxLockMs,
    ...keyColumns(attempts),
    startedAt: attempts.map(({ startedAt }) => startedAt.toISOString()),
    durationsMs: attempts.map(({ durationMs }) => Math.round(durationMs)),
    httpStatuses: attempts.map(({ httpStatus }) => httpStatus),
    errors: attempts.map(({ error }) => error),
    answerStarts: attempts.map(({ eventId, answerStart }) =>
      answerStart ? sealAnswerStart(ring, eventId, answerStart) : null,
    ),
    areGone: attempts.map(({ isGone }) => isGone),
  });
}

/** The attempts by column. */
interface RecordValues extends KeyColumns {
  delaysMs: readonly number[];
  maxLockMs: number;
  startedAt: string[];
  durationsMs: number[];
  httpStatuses: (number | null)[];
  errors: (string | null)[];
  answerStarts: (Buffer | null)[];
  areGone: boolean[];
}

/** After an attempt of the delivery `d`; null if it was the last. A resend may have changed the row meanwhile. */
const delayMs = ({ delaysMs }: RecordValues) => sql`(${delaysMs}::float8[])[d.schedule_attempts + 1]`;

// Row "attempted" of the table in domain/event.ts. Written out: it writes three tables. The endpoints come
// first, in one order, since everybody else writes them last; then the deliveries, in the order in which
// requests lock them. All endpoints are locked, because only a locked row has what others have just
// committed; while they succeed, each is written about once a second. Each run of ten failures owes an event,
// even if a success ends it in the same statement.
const record = autocommitStatement(
  (_, values: RecordValues) => sql`
  WITH ${ASYNCHRONOUS_COMMIT}, patience AS MATERIALIZED (
    SELECT set_config('lock_timeout', ${values.maxLockMs}::int || 'ms', true)
  ), attempt AS MATERIALIZED (
    SELECT *, started_at + duration_ms * interval '1 millisecond' AS ended_at
    FROM (SELECT DISTINCT ON (event_id, endpoint_id) * FROM unnest(${values.eventIds}::text[],
      ${values.endpointIds}::text[], ${values.startedAt}::timestamptz[],
      ${values.durationsMs}::int[], ${values.httpStatuses}::smallint[], ${values.errors}::text[],
      ${values.answerStarts}::bytea[], ${values.areGone}::boolean[])
      WITH ORDINALITY a (event_id, endpoint_id, started_at, duration_ms, http_status, error,
        answer_start, is_gone, nth) ORDER BY event_id, endpoint_id, error IS NOT NULL, nth DESC) a
  ), last_success AS (
    SELECT endpoint_id, max(nth) AS nth, max(ended_at) AS at FROM attempt WHERE error IS NULL
      GROUP BY endpoint_id
  ), last_failure AS (
    SELECT DISTINCT ON (endpoint_id) endpoint_id, ended_at AS at, http_status, error FROM attempt
      WHERE error IS NOT NULL
    ORDER BY endpoint_id, nth DESC
  ), failed_since AS (
    SELECT a.endpoint_id, count(*)::int AS count, min(a.ended_at) AS since
    FROM attempt a LEFT JOIN last_success s ON s.endpoint_id = a.endpoint_id
    WHERE a.nth > coalesce(s.nth, 0) GROUP BY a.endpoint_id
  ), run AS (
    SELECT endpoint_id, successes, count(*)::int AS count FROM (
      SELECT endpoint_id, error, count(*) FILTER (WHERE error IS NULL) OVER (PARTITION BY endpoint_id
        ORDER BY nth) AS successes
      FROM attempt
    ) a WHERE error IS NOT NULL GROUP BY endpoint_id, successes
  ), longest AS (
    SELECT endpoint_id, max(count) FILTER (WHERE successes = 0) AS first,
      max(count) FILTER (WHERE successes > 0) AS later
    FROM run GROUP BY endpoint_id
  ), held AS MATERIALIZED (
    SELECT w.id, w.consecutive_failures > 0 OR w.last_success_at IS NULL
        OR w.last_success_at < account_time(w.partner_id, w.mode, clock_timestamp()) - interval '1 second' AS is_behind
    FROM (SELECT count(*) FROM patience) is_set, webhook_endpoint w
    WHERE w.id = ANY (${values.endpointIds}) ORDER BY w.id FOR NO KEY UPDATE OF w
  ), judged AS (
    UPDATE webhook_endpoint w SET
      consecutive_failures = coalesce(f.count, 0) + CASE WHEN s.nth IS NULL THEN w.consecutive_failures ELSE 0 END,
      failing_since = CASE WHEN s.nth IS NULL AND w.failing_since IS NOT NULL THEN w.failing_since
        ELSE account_time(w.partner_id, w.mode, f.since) END,
      failing_told = w.failing_told AND s.nth IS NULL OR coalesce(f.count, 0)
        + CASE WHEN s.nth IS NULL THEN w.consecutive_failures ELSE 0 END >= ${sql.lit(FAILING_AFTER)},
      failing_owed = w.failing_owed OR coalesce(r.later >= ${sql.lit(FAILING_AFTER)}, false)
        OR NOT w.failing_told AND coalesce(r.first + w.consecutive_failures >= ${sql.lit(FAILING_AFTER)}, false),
      last_success_at = coalesce(account_time(w.partner_id, w.mode, s.at), w.last_success_at),
      last_failure_at = coalesce(account_time(w.partner_id, w.mode, l.at), w.last_failure_at),
      last_failure_http_status = CASE WHEN l.at IS NULL THEN w.last_failure_http_status ELSE l.http_status END,
      last_failure_error = coalesce(l.error, w.last_failure_error)
    FROM held LEFT JOIN last_success s ON s.endpoint_id = held.id LEFT
      JOIN last_failure l ON l.endpoint_id = held.id
      LEFT JOIN failed_since f ON f.endpoint_id = held.id LEFT JOIN longest r ON r.endpoint_id = held.id
    WHERE w.id = held.id AND (held.is_behind OR l.endpoint_id IS NOT NULL)
  ), locked AS MATERIALIZED (
    SELECT d.event_id FROM (SELECT count(*) FROM held) all_held, attempt a
      JOIN delivery d ON d.event_id = a.event_id AND d.endpoint_id = a.endpoint_id
    ORDER BY d.event_id, d.endpoint_id FOR NO KEY UPDATE OF d
  ), counted AS (
    UPDATE delivery d SET attempt_count = d.attempt_count + 1, schedule_attempts = d.schedule_attempts + 1,
      status = CASE WHEN d.status = 'delivered' OR a.error IS NULL THEN 'delivered'
        WHEN a.is_gone THEN 'pending' WHEN ${delayMs(values)} IS NULL THEN 'given_up' ELSE 'retrying' END,
      next_attempt_at = CASE WHEN d.status <> 'delivered' AND a.error IS NOT NULL AND NOT a.is_gone
        THEN ${delayMs(values)} * interval '1 millisecond'
        -- One jump of a sandbox clock runs the whole schedule, also one that came during the first attempt.
        + CASE WHEN d.mode = 'test' AND EXISTS (SELECT FROM test_clock_advance c WHERE c.partner_id = d.partner_id)
            THEN coalesce(d.next_attempt_at, account_time(d.partner_id, d.mode, a.started_at))
            ELSE account_time(d.partner_id, d.mode, clock_timestamp()) END END,
      lease_expires_at = '-infinity',
      workflow = CASE WHEN a.is_gone OR (d.workflow = 'none' AND a.error IS NULL) THEN d.workflow
        ELSE 'untold' END
    FROM attempt a, asynchronous_commit, (SELECT count(*) FROM locked) all_locked
    WHERE d.event_id = a.event_id AND d.endpoint_id = a.endpoint_id
    RETURNING d.event_id, d.endpoint_id, d.attempt_count,
      account_time(d.partner_id, d.mode, a.started_at) AS started_at
  )
  INSERT INTO delivery_attempt (event_id, endpoint_id, number, started_at, duration_ms,
    delivered, http_status, error, answer_start)
  SELECT c.event_id, c.endpoint_id, c.attempt_count, c.started_at, a.duration_ms, a.error IS NULL,
    a.http_status, a.error, a.answer_start
  FROM counted c JOIN attempt a ON a.event_id = c.event_id AND a.endpoint_id = c.endpoint_id`,
  { acrossTenants: 'queue' },
);

/** Gives up deliveries whose events are no longer kept, so that they are taken no more. */
export async function giveUpLost(orm: Orm, deliveries: readonly DeliveryKey[]): Promise<void> {
  await giveUp(orm, keyColumns(deliveries));
}

// Row "lost" of the table in domain/event.ts.
const giveUp = autocommitStatement(
  (_, { eventIds, endpointIds }: KeyColumns) => sql`
  UPDATE delivery d SET status = 'given_up', next_attempt_at = NULL, lease_expires_at = '-infinity',
    workflow = CASE WHEN d.workflow = 'told' THEN 'untold' ELSE d.workflow END
  FROM unnest(${eventIds}::text[], ${endpointIds}::text[]) k (event_id, endpoint_id)
  WHERE d.event_id = k.event_id AND d.endpoint_id = k.endpoint_id AND d.status = 'pending'`,
  { acrossTenants: 'queue' },
);

/**
 * Makes the row of an event that no endpoint wanted that of the first endpoint it is sent to. It comes before
 * the statement that makes the event pending, and is not one with it, since that reads a partitioned table:
 * see findErrors in retries.ts.
 */
export const giveEndpoint = writeStatement(
  (_, { eventIds, endpointIds }: KeyColumns) => sql`
  UPDATE delivery d SET endpoint_id = k.endpoint_id
  FROM (SELECT event_id, min(endpoint_id) AS endpoint_id
    FROM unnest(${eventIds}::text[], ${endpointIds}::text[]) k (event_id, endpoint_id) GROUP BY event_id) k
  WHERE d.event_id = k.event_id AND d.endpoint_id = ''`,
  { acrossTenants: 'id' },
);
