import { sql } from 'kysely';
import type { Logger } from 'pino';
import { type DeliveryStatus, EVENTS_KEPT_DAYS } from '../../domain/event.ts';
import type { Tenant } from '../../domain/mode.ts';
import type { Row } from '../../platform/db/entities.ts';
import { hasPassed } from '../../platform/db/has-passed.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { anyOf, autocommitStatement, readStatement, writeStatement } from '../../platform/db/sql.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { describeError } from '../../platform/process/describe-error.ts';
import { giveEndpoint } from '../deliveries.ts';
import type { WebhookReplayRow } from './resource.ts';
import { isMatching, type MatchValues } from './start.ts';

/** How many events of a replay are in line at a time: few, so that the table of pending rows stays short. */
const MAX_IN_LINE = 32;
/** How long a replay waits between two looks. So it sends at most 640 events a second. */
const PACE_MS = 50;
/** How long it waits if it has nothing to do until an attempt ends: the receiver is slow. */
const IDLE_MS = 500;
/** How long it waits after a look that failed. */
const FAILED_MS = 1_000;
/** How many events one look goes through. */
const MAX_LOOKED_AT = 1_000;
/** How many replays have a turn together. */
const MAX_REPLAYS = 50;

/** Where the replays of all workers stand after a turn. */
export interface ReplayTurn {
  /** How many events were put in line. */
  queued: number;
  /** Whether any replay has events left. */
  isAnyRunning: boolean;
}

/**
 * Puts the next events of each running replay in line, as many as it has room for, oldest first. All workers
 * together do it once in {@link PACE_MS} for each replay. If the endpoint was disabled meanwhile, the rest is
 * parked. One whose account is locked has its turn later, and so has one whose look fails: it delays no
 * other.
 */
export async function continueReplays(orm: Orm, logger: Logger): Promise<ReplayTurn> {
  const running = await findRunningSoon(orm.em.fork(), { limit: MAX_REPLAYS });
  let queued = 0;
  for (const replay of running) {
    if (!replay.is_due) continue;
    try {
      queued += await continueReplay(orm, replay);
    } catch (error) {
      const { id: replayId, partner_id: partnerId, mode } = replay;
      logger.error({ replayId, error: describeError(error) }, 'could not continue a replay; trying again');
      await postpone(orm, { partnerId, mode, replayId, pauseMs: FAILED_MS });
    }
  }
  return { queued, isAnyRunning: running.length > 0 };
}

type DueReplay = Row<'webhook_replay', 'id' | 'partner_id' | 'mode' | 'endpoint_id'>;

/** Whether a replay has its turn. */
const IS_DUE = hasPassed('due_at', FAILED_MS);

// A worker that has none left looks again only after a while, so it asks for those that another worker has
// just served, too.
const findRunningSoon = readStatement(
  (db, { limit }: { limit: number }) =>
    db
      .selectFrom('webhook_replay')
      .select(['id', 'partner_id', 'mode', 'endpoint_id'])
      .select(IS_DUE.as('is_due'))
      .where('status', '=', sql.lit<'running'>('running'))
      .orderBy('due_at')
      .limit(sql<number>`${limit}`),
  { acrossTenants: 'queue' },
);

// Whoever has the row locked is serving the replay.
const postpone = autocommitStatement(
  (_, { partnerId, mode, replayId, pauseMs }: Tenant & { replayId: string; pauseMs: number }) => sql`
  UPDATE webhook_replay r SET due_at = clock_timestamp() + ${pauseMs} * interval '1 millisecond'
  FROM (
    SELECT id FROM webhook_replay
    WHERE partner_id = ${partnerId} AND mode = ${mode} AND id = ${replayId} FOR NO KEY UPDATE SKIP LOCKED
  ) failed
  WHERE r.partner_id = ${partnerId} AND r.mode = ${mode} AND r.id = failed.id`,
);

/** @returns how many events it has put in line */
function continueReplay(
  orm: Orm,
  { id: replayId, partner_id: partnerId, mode, endpoint_id: endpointId }: DueReplay,
): Promise<number> {
  return transaction(orm, async (tx) => {
    const [account] = await tryLockAccount(tx, { partnerId });
    if (account === undefined) return 0;
    const [replay] = await takeReplay(tx, { partnerId, mode, replayId });
    if (replay === undefined) return 0;
    const [endpoint] = await findEndpoint(tx, { partnerId, mode, endpointId });
    if (endpoint === undefined) {
      await deleteReplay(tx, { partnerId, mode, replayId });
      return 0;
    }
    const deliveries = await readDeliveries(tx, { partnerId, mode, endpointId, eventIds: replay.in_line });
    const waiting = deliveries.filter((delivery) => delivery.status === 'pending');
    const sent = deliveries.filter((delivery) => !['pending', 'parked'].includes(delivery.status));
    const isEnabled = endpoint.status === 'enabled';
    const room = isEnabled ? MAX_IN_LINE - waiting.length : MAX_LOOKED_AT;
    let afterEventId = replay.after_event_id;
    let eventIds: string[] = [];
    if (room > 0) {
      const found = await findMatching(tx, {
        partnerId,
        mode,
        endpointId,
        wanted: replay.wanted,
        eventTypes: replay.event_types,
        wantedTypes: endpoint.event_types,
        afterEventId,
        beforeEventId: replay.before_event_id,
        keptDays: EVENTS_KEPT_DAYS,
        maxLookedAt: MAX_LOOKED_AT,
        room,
      });
      const last = found.at(-1);
      const isMoreLeft = last !== undefined && (found.length === room || last.is_end_of_look);
      afterEventId = isMoreLeft ? last.id : replay.before_event_id;
      const matching = found.filter(({ is_matching }) => is_matching);
      eventIds = matching.map(({ id }) => id);
      if (matching.length > 0) {
        await giveEndpoint(tx, { eventIds, endpointIds: eventIds.map(() => endpointId) });
        await putInLine(tx, {
          partnerId,
          mode,
          endpointId,
          eventIds,
          types: matching.map(({ type }) => type),
          status: isEnabled ? 'pending' : 'parked',
        });
      }
    }
    const isAtEnd = afterEventId === replay.before_event_id;
    const isIdle = sent.length === 0 && eventIds.length === 0 && (room === 0 || isAtEnd);
    const inLine = waiting.map(({ event_id }) => event_id);
    if (isEnabled) inLine.push(...eventIds);
    await recordProgress(tx, {
      partnerId,
      mode,
      replayId,
      status: isAtEnd && inLine.length === 0 ? 'completed' : 'running',
      afterEventId,
      inLine,
      sent: sent.length,
      pauseMs: isIdle ? IDLE_MS : PACE_MS,
    });
    return isEnabled ? eventIds.length : 0;
  });
}

// The look waits for no row for long, since other accounts' replays wait for it.
const tryLockAccount = writeStatement((db, { partnerId }: { partnerId: string }) =>
  db
    .selectFrom('partner')
    .select(['id', sql`set_config('lock_timeout', '100ms', true)`.as('lock_timeout')])
    .where('id', '=', partnerId)
    .forShare()
    .skipLocked(),
);

const takeReplay = writeStatement((db, { partnerId, mode, replayId }: Tenant & { replayId: string }) =>
  db
    .selectFrom('webhook_replay')
    .select(['wanted', 'event_types', 'after_event_id', 'before_event_id', 'in_line'])
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .where('id', '=', replayId)
    .where('status', '=', 'running')
    .where(IS_DUE)
    .forNoKeyUpdate()
    .skipLocked(),
);

const findEndpoint = readStatement((db, { partnerId, mode, endpointId }: Tenant & { endpointId: string }) =>
  db
    .selectFrom('webhook_endpoint')
    .select(['status', 'event_types'])
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .where('id', '=', endpointId),
);

// During an upgrade, a process of the release before deletes an endpoint without its replays.
const deleteReplay = writeStatement((db, { partnerId, mode, replayId }: Tenant & { replayId: string }) =>
  db
    .deleteFrom('webhook_replay')
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .where('id', '=', replayId),
);

const readDeliveries = readStatement(
  (
    db,
    { partnerId, mode, endpointId, eventIds }: Tenant & { endpointId: string; eventIds: readonly string[] },
  ) =>
    db
      .selectFrom('delivery')
      .select(['event_id', 'status'])
      .where('partner_id', '=', partnerId)
      .where('mode', '=', mode)
      .where('endpoint_id', '=', endpointId)
      .where('event_id', '=', anyOf(eventIds)),
);

interface LookValues extends MatchValues {
  afterEventId: string;
  beforeEventId: string;
  keptDays: number;
  maxLookedAt: number;
  room: number;
}

interface FoundEvent {
  id: string;
  type: string;
  is_matching: boolean;
  /** Whether it is the last one that the look goes through. It is returned even if it doesn't match. */
  is_end_of_look: boolean;
}

// It reads no further than the last event that it returns. Events older than 30 days are left out by the time
// it is now, not when the transaction began: their deliveries are deleted, so that one that was delivered
// would look as if it had not been.
const findMatching = readStatement((_, values: LookValues) => {
  const { partnerId, mode, endpointId, afterEventId, beforeEventId, keptDays, maxLookedAt, room } = values;
  return sql<FoundEvent>`
  SELECT e.id, e.type, m.is_matching, e.nth = ${maxLookedAt}::int AS is_end_of_look
  FROM (
    SELECT id, type, only_endpoint_id, except_endpoint_id, row_number() OVER (ORDER BY id) AS nth FROM event
    WHERE partner_id = ${partnerId} AND mode = ${mode} AND id < ${beforeEventId} AND id > (
      SELECT greatest(${afterEventId},
        'evt_' || id_time(clock_timestamp() - ${keptDays} * interval '1 day') COLLATE "C"))
    ORDER BY id LIMIT ${maxLookedAt}::int
  ) e LEFT JOIN LATERAL (
    SELECT status FROM delivery
    WHERE event_id = e.id AND endpoint_id = ${endpointId} AND partner_id = ${partnerId} AND mode = ${mode}
      LIMIT 1
  ) d ON true CROSS JOIN LATERAL (SELECT ${isMatching(values)} AS is_matching) m
  WHERE m.is_matching OR e.nth = ${maxLookedAt}::int
  ORDER BY e.id LIMIT ${room}::int`;
});

interface LineValues extends Tenant {
  endpointId: string;
  eventIds: readonly string[];
  types: readonly string[];
  status: Extract<DeliveryStatus, 'pending' | 'parked'>;
}

// Row "replayed" of the table in domain/event.ts. Written out: the endpoint may have a row for the event or
// not.
const putInLine = writeStatement(
  (_, { partnerId, mode, endpointId, eventIds, types, status }: LineValues) => sql`
  INSERT INTO delivery AS d (event_id, endpoint_id, partner_id, mode, type, status, next_attempt_at, replayed)
  SELECT k.event_id, ${endpointId}, ${partnerId}, ${mode}, k.type, ${status}::text,
    CASE WHEN ${status}::text = 'pending' THEN account_time(${partnerId}, ${mode}, clock_timestamp()) END, true
  FROM unnest(${eventIds}::text[], ${types}::text[]) k (event_id, type)
  ORDER BY k.event_id
  ON CONFLICT (event_id, endpoint_id) DO UPDATE SET status = excluded.status, schedule_attempts = 0,
    lease_expires_at = '-infinity', next_attempt_at = excluded.next_attempt_at, replayed = true,
    workflow = CASE WHEN excluded.status = 'parked' AND d.workflow = 'told' THEN 'untold' ELSE d.workflow END
  WHERE d.partner_id = ${partnerId} AND d.mode = ${mode} AND d.status <> 'pending'`,
);

interface Progress extends Tenant {
  replayId: string;
  status: WebhookReplayRow['status'];
  afterEventId: string;
  inLine: readonly string[];
  /** Since the last look. */
  sent: number;
  /** Until the next look. */
  pauseMs: number;
}

// Events can come to match after they were counted.
const recordProgress = writeStatement(
  (_, { partnerId, mode, replayId, status, afterEventId, inLine, sent, pauseMs }: Progress) => sql`
  UPDATE webhook_replay SET status = ${status}, after_event_id = ${afterEventId}, in_line = ${inLine}::text[],
    sent = sent + ${sent}::int, matched = greatest(matched, sent + ${sent}::int + cardinality(${inLine}::text[])),
    due_at = clock_timestamp() + ${pauseMs} * interval '1 millisecond'
  WHERE partner_id = ${partnerId} AND mode = ${mode} AND id = ${replayId}`,
);
