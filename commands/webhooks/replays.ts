import { sql } from 'kysely';
import { newId } from '../../crypto/new-id.ts';
import { boundTime, firstId } from '../../db/account-clock.ts';
import type { Orm } from '../../db/orm.ts';
import { anyOf, autocommitStatement, readStatement, writeStatement } from '../../db/sql.ts';
import type { Row } from '../../db/tables.ts';
import { transaction } from '../../db/transaction.ts';
import { ApiError } from '../../domain/api-error.ts';
import { type DeliveryStatus, EVENTS_KEPT_DAYS } from '../../domain/event.ts';
import type { Tenant } from '../../domain/mode.ts';
import type { EventType } from '../../resources/event-types.ts';
import type { WebhookReplayRow } from '../../resources/webhook-replay.ts';
import { readEndpoint } from './read-endpoints.ts';

/** How many events of a replay are in line at a time: few, since they share the endpoint's slots with what happens meanwhile. */
const MAX_IN_LINE = 32;
/** How long a replay waits between two looks. So it sends at most 640 events a second. */
const PACE_MS = 50;
/** How many events one look goes through. */
const MAX_LOOKED_AT = 1_000;
/** How many replays have a turn together. */
const MAX_REPLAYS = 50;

/** Which of an endpoint's events are to be sent again (docs/partners/webhooks.md#replaying-events). */
interface ReplayRequest {
  endpointId: string;
  createdGte: Date;
  /** Undefined: now. */
  createdLte: Date | undefined;
  wanted: WebhookReplayRow['wanted'];
  /** Null: all that the endpoint wants. */
  eventTypes: readonly EventType[] | null;
}

/**
 * Starts to send events of an account to an endpoint again. {@link continueReplays} puts them in line.
 * @throws ApiError `webhook_endpoint_not_found`, `invalid_state` if the endpoint is disabled, or another replay of it is running
 */
export async function startReplay(
  orm: Orm,
  tenant: Tenant,
  request: ReplayRequest,
): Promise<WebhookReplayRow> {
  const { partnerId, mode } = tenant;
  const { endpointId, createdGte, createdLte, wanted, eventTypes } = request;
  const reader = orm.em.fork();
  const endpoint = await readEndpoint(reader, tenant, endpointId);
  if (endpoint.status === 'disabled') throw disabled();
  const [running] = await findRunning(reader, { partnerId, mode, endpointId });
  if (running !== undefined) throw alreadyRunning(running.id);
  const range = {
    partnerId,
    mode,
    endpointId,
    createdFrom: boundTime(createdGte),
    createdBefore: boundTime(createdLte && new Date(createdLte.getTime() + 1)),
    keptDays: EVENTS_KEPT_DAYS,
    wanted,
    eventTypes: eventTypes && [...eventTypes],
    wantedTypes: endpoint.event_types,
  };
  const [counted] = await countMatching(reader, range);
  if (counted === undefined) throw new Error('a count has one row');
  return transaction(orm, async (tx) => {
    await lockAccount(tx, { partnerId });
    // Again, since it may have been disabled or deleted meanwhile.
    if ((await readEndpoint(tx, tenant, endpointId)).status === 'disabled') throw disabled();
    const [started] = await insertReplay(tx, {
      partnerId,
      mode,
      endpointId,
      id: newId('rpl'),
      status: counted.matched === 0 ? 'completed' : 'running',
      wanted,
      eventTypes: eventTypes && [...eventTypes],
      afterEventId: counted.after_event_id,
      beforeEventId: counted.before_event_id,
      matched: counted.matched,
    });
    if (started !== undefined) return started;
    const [other] = await findRunning(tx, { partnerId, mode, endpointId });
    throw alreadyRunning(other?.id);
  });
}

const disabled = () =>
  new ApiError('invalid_state', {
    message: 'The webhook endpoint is disabled. Enable it with PATCH /webhook-endpoints/{id} first.',
  });

const alreadyRunning = (replayId = '') =>
  new ApiError('invalid_state', {
    message: `A replay of this webhook endpoint is running: ${replayId}. Wait until its status is completed, and then try again.`,
  });

const findRunning = readStatement((db, { partnerId, mode, endpointId }: Tenant & { endpointId: string }) =>
  db
    .selectFrom('webhook_replay')
    .select('id')
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .where('endpoint_id', '=', endpointId)
    // A literal, so that the partial index can be used.
    .where('status', '=', sql.lit<'running'>('running')),
);

interface MatchValues extends Tenant {
  endpointId: string;
  wanted: WebhookReplayRow['wanted'];
  /** Null for all. */
  eventTypes: readonly string[] | null;
  /** The endpoint's; null for all. */
  wantedTypes: readonly string[] | null;
}

/**
 * Whether an event `e` with the endpoint's delivery `d`, if it has one, is to be sent again. What is parked is sent anyway, as the
 * endpoint is enabled.
 */
const isMatching = ({ endpointId, wanted, eventTypes, wantedTypes }: MatchValues) => sql<boolean>`
  (${wantedTypes}::text[] IS NULL OR e.type = ANY (${wantedTypes}::text[]))
  AND (${eventTypes}::text[] IS NULL OR e.type = ANY (${eventTypes}::text[]))
  AND coalesce(e.only_endpoint_id, ${endpointId}) = ${endpointId} AND e.except_endpoint_id IS DISTINCT FROM ${endpointId}
  AND CASE ${wanted}::text
    WHEN 'given_up' THEN coalesce(d.status, '') = 'given_up'
    WHEN 'undelivered' THEN coalesce(d.status, '') NOT IN ('delivered', 'pending', 'parked', 'retrying')
    ELSE coalesce(d.status, '') NOT IN ('pending', 'parked') END`;

// An id has the real time, so the ids alone say what is in the range of time (docs/decisions/sandbox-clock.md).
const countMatching = readStatement(
  (
    _,
    values: MatchValues & { createdFrom: string | null; createdBefore: string | null; keptDays: number },
  ) => {
    const { partnerId, mode, endpointId, createdFrom, createdBefore, keptDays } = values;
    return sql<{ after_event_id: string; before_event_id: string; matched: number }>`
  WITH range AS MATERIALIZED (
    SELECT greatest(${firstId('evt', values, createdFrom)},
        'evt_' || id_time(now() - ${keptDays} * interval '1 day') COLLATE "C") AS after_id,
      least('evt_' || id_time(now() + interval '1 ms') COLLATE "C",
        CASE WHEN ${createdBefore}::text IS NOT NULL THEN ${firstId('evt', values, createdBefore)} END) AS before_id
  )
  SELECT r.after_id AS after_event_id, r.before_id AS before_event_id, (
      SELECT count(*)::int FROM event e LEFT JOIN delivery d ON d.event_id = e.id AND d.endpoint_id = ${endpointId}
        AND d.partner_id = ${partnerId} AND d.mode = ${mode}
      WHERE e.partner_id = ${partnerId} AND e.mode = ${mode} AND e.id > r.after_id AND e.id < r.before_id
        AND ${isMatching(values)}) AS matched
  FROM range r`;
  },
);

/** Nobody enables, disables or deletes an endpoint of the account until the transaction ends. */
const lockAccount = writeStatement((db, { partnerId }: { partnerId: string }) =>
  db.selectFrom('partner').select('id').where('id', '=', partnerId).forShare(),
);

interface NewReplay extends Tenant {
  endpointId: string;
  id: string;
  status: WebhookReplayRow['status'];
  wanted: WebhookReplayRow['wanted'];
  eventTypes: string[] | null;
  afterEventId: string;
  beforeEventId: string;
  matched: number;
}

const insertReplay = writeStatement((db, replay: NewReplay) =>
  db
    .insertInto('webhook_replay')
    .values({
      id: replay.id,
      partner_id: replay.partnerId,
      mode: replay.mode,
      endpoint_id: replay.endpointId,
      status: replay.status,
      wanted: replay.wanted,
      event_types: replay.eventTypes,
      after_event_id: replay.afterEventId,
      before_event_id: replay.beforeEventId,
      matched: replay.matched,
      created_at: sql<string>`account_now(${replay.partnerId}, ${replay.mode})`,
    })
    .onConflict((conflict) =>
      conflict.column('endpoint_id').where('status', '=', sql.lit<'running'>('running')).doNothing(),
    )
    .returning(['id', 'mode', 'endpoint_id', 'status', 'wanted', 'matched', 'sent', 'created_at']),
);

/** @throws ApiError `webhook_replay_not_found` */
export async function readReplay(
  orm: Orm,
  { partnerId, mode }: Tenant,
  { endpointId, replayId }: { endpointId: string; replayId: string },
): Promise<WebhookReplayRow> {
  const [replay] = await selectReplay(orm.em.fork(), { partnerId, mode, endpointId, replayId });
  if (replay === undefined) throw new ApiError('webhook_replay_not_found');
  return replay;
}

const selectReplay = readStatement(
  (db, { partnerId, mode, endpointId, replayId }: Tenant & { endpointId: string; replayId: string }) =>
    db
      .selectFrom('webhook_replay')
      .select(['id', 'mode', 'endpoint_id', 'status', 'wanted', 'matched', 'sent', 'created_at'])
      .where('partner_id', '=', partnerId)
      .where('mode', '=', mode)
      .where('endpoint_id', '=', endpointId)
      .where('id', '=', replayId),
);

/** Where the replays of all workers stand after a turn. */
export interface ReplayTurn {
  /** How many events were put in line. */
  queued: number;
  /** Whether any replay has events left. */
  isAnyRunning: boolean;
}

/**
 * Puts the next events of each running replay in line, as many as it has room for, oldest first. All workers together do it once
 * in {@link PACE_MS} for each replay. If the endpoint was disabled meanwhile, the rest is parked. One whose account is locked has
 * its turn later.
 */
export async function continueReplays(orm: Orm): Promise<ReplayTurn> {
  const running = await findRunningSoon(orm.em.fork(), { limit: MAX_REPLAYS });
  let queued = 0;
  for (const replay of running) if (replay.is_due) queued += await continueReplay(orm, replay);
  return { queued, isAnyRunning: running.length > 0 };
}

type DueReplay = Row<'webhook_replay', 'id' | 'partner_id' | 'mode' | 'endpoint_id'>;

// A worker that has none left looks again only after a while, so it asks for those that another worker has just served, too.
const findRunningSoon = readStatement(
  (db, { limit }: { limit: number }) =>
    db
      .selectFrom('webhook_replay')
      .select(['id', 'partner_id', 'mode', 'endpoint_id'])
      .select(({ ref }) => sql<boolean>`${ref('due_at')} <= clock_timestamp()`.as('is_due'))
      .where('status', '=', sql.lit<'running'>('running'))
      .orderBy('due_at')
      .limit(sql<number>`${limit}`),
  { acrossTenants: 'queue' },
);

/** @returns how many events it has put in line */
function continueReplay(
  orm: Orm,
  { id: replayId, partner_id: partnerId, mode, endpoint_id: endpointId }: DueReplay,
): Promise<number> {
  return transaction(orm, async (tx) => {
    const [isLocked] = await tryLockAccount(tx, { partnerId });
    if (isLocked === undefined) return 0;
    const [replay] = await takeReplay(tx, { partnerId, mode, replayId, paceMs: PACE_MS });
    if (replay === undefined) return 0;
    const { status, event_types: wantedTypes } = await readEndpoint(tx, { partnerId, mode }, endpointId);
    const deliveries = await readDeliveries(tx, { partnerId, mode, endpointId, eventIds: replay.in_line });
    const waiting = deliveries.filter((delivery) => delivery.status === 'pending');
    const sent = deliveries.filter((delivery) => !['pending', 'parked'].includes(delivery.status));
    const room = status === 'disabled' ? MAX_LOOKED_AT : MAX_IN_LINE - waiting.length;
    const events = await findMatching(tx, {
      partnerId,
      mode,
      endpointId,
      wanted: replay.wanted,
      eventTypes: replay.event_types,
      wantedTypes,
      afterEventId: replay.after_event_id,
      beforeEventId: replay.before_event_id,
      maxLookedAt: MAX_LOOKED_AT,
    });
    const matching = events.filter(({ is_matching }) => is_matching);
    const next = matching.slice(0, room);
    const eventIds = next.map(({ id }) => id);
    if (next.length > 0) {
      await giveEndpoint(tx, { partnerId, mode, endpointId, eventIds });
      await putInLine(tx, {
        partnerId,
        mode,
        endpointId,
        eventIds,
        types: next.map(({ type }) => type),
        status: status === 'disabled' ? 'parked' : 'pending',
      });
    }
    const inLine = waiting.map(({ event_id }) => event_id);
    if (status === 'enabled') inLine.push(...eventIds);
    const lastLookedAt = next.length < matching.length ? next.at(-1) : events.at(-1);
    const isAtEnd = next.length === matching.length && events.length < MAX_LOOKED_AT;
    await recordProgress(tx, {
      partnerId,
      mode,
      replayId,
      status: isAtEnd && inLine.length === 0 ? 'completed' : 'running',
      afterEventId: lastLookedAt?.id ?? replay.after_event_id,
      inLine,
      sent: sent.length,
    });
    return status === 'enabled' ? next.length : 0;
  });
}

const tryLockAccount = writeStatement((db, { partnerId }: { partnerId: string }) =>
  db.selectFrom('partner').select('id').where('id', '=', partnerId).forShare().skipLocked(),
);

const takeReplay = writeStatement(
  (_, { partnerId, mode, replayId, paceMs }: Tenant & { replayId: string; paceMs: number }) => sql<
    Row<'webhook_replay', 'wanted' | 'event_types' | 'after_event_id' | 'before_event_id' | 'in_line'>
  >`
  UPDATE webhook_replay r SET due_at = clock_timestamp() + ${paceMs} * interval '1 millisecond'
  FROM (
    SELECT id FROM webhook_replay
    WHERE partner_id = ${partnerId} AND mode = ${mode} AND id = ${replayId} AND status = 'running'
      AND due_at <= clock_timestamp()
    FOR NO KEY UPDATE SKIP LOCKED
  ) due
  WHERE r.partner_id = ${partnerId} AND r.mode = ${mode} AND r.id = due.id
  RETURNING r.wanted, r.event_types, r.after_event_id, r.before_event_id, r.in_line`,
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

const findMatching = readStatement(
  (_, values: MatchValues & { afterEventId: string; beforeEventId: string; maxLookedAt: number }) => {
    const { partnerId, mode, endpointId, afterEventId, beforeEventId, maxLookedAt } = values;
    return sql<{ id: string; type: string; is_matching: boolean }>`
  SELECT e.id, e.type, ${isMatching(values)} AS is_matching
  FROM (
    SELECT id, type, only_endpoint_id, except_endpoint_id FROM event
    WHERE partner_id = ${partnerId} AND mode = ${mode} AND id > ${afterEventId} AND id < ${beforeEventId}
    ORDER BY id LIMIT ${maxLookedAt}
  ) e LEFT JOIN LATERAL (
    SELECT status FROM delivery
    WHERE event_id = e.id AND endpoint_id = ${endpointId} AND partner_id = ${partnerId} AND mode = ${mode} LIMIT 1
  ) d ON true
  ORDER BY e.id`;
  },
);

interface LineValues extends Tenant {
  endpointId: string;
  eventIds: readonly string[];
}

// The row of an event that no endpoint wanted becomes that of the first endpoint it is sent to.
const giveEndpoint = writeStatement((db, { partnerId, mode, endpointId, eventIds }: LineValues) =>
  db
    .updateTable('delivery')
    .set({ endpoint_id: endpointId })
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .where('event_id', '=', anyOf(eventIds))
    .where('endpoint_id', '=', ''),
);

// Row "replayed" of the table in domain/event.ts. Written out: the endpoint may have a row for the event or not.
const putInLine = writeStatement(
  (
    _,
    values: LineValues & { types: readonly string[]; status: Extract<DeliveryStatus, 'pending' | 'parked'> },
  ) => {
    const { partnerId, mode, endpointId, eventIds, types, status } = values;
    return sql`
  INSERT INTO delivery AS d (event_id, endpoint_id, partner_id, mode, type, status, next_attempt_at, replayed)
  SELECT k.event_id, ${endpointId}, ${partnerId}, ${mode}, k.type, ${status}::text,
    CASE WHEN ${status}::text = 'pending' THEN account_time(${partnerId}, ${mode}, clock_timestamp()) END, true
  FROM unnest(${eventIds}::text[], ${types}::text[]) k (event_id, type)
  ORDER BY k.event_id
  ON CONFLICT (event_id, endpoint_id) DO UPDATE SET status = excluded.status, schedule_attempts = 0,
    lease_expires_at = '-infinity', next_attempt_at = excluded.next_attempt_at, replayed = true,
    workflow = CASE WHEN excluded.status = 'parked' AND d.workflow = 'told' THEN 'untold' ELSE d.workflow END
  WHERE d.partner_id = ${partnerId} AND d.mode = ${mode} AND d.status <> 'pending'`;
  },
);

interface Progress extends Tenant {
  replayId: string;
  status: WebhookReplayRow['status'];
  afterEventId: string;
  inLine: readonly string[];
  /** Since the last look. */
  sent: number;
}

// Events can come to match after they were counted.
const recordProgress = writeStatement(
  (_, { partnerId, mode, replayId, status, afterEventId, inLine, sent }: Progress) => sql`
  UPDATE webhook_replay SET status = ${status}, after_event_id = ${afterEventId}, in_line = ${inLine}::text[],
    sent = sent + ${sent}::int, matched = greatest(matched, sent + ${sent}::int + cardinality(${inLine}::text[]))
  WHERE partner_id = ${partnerId} AND mode = ${mode} AND id = ${replayId}`,
);

/**
 * Deletes replays whose events are no longer kept.
 * @returns how many
 */
export async function pruneReplays(orm: Orm): Promise<number> {
  return (await prune(orm, { keptDays: EVENTS_KEPT_DAYS })).length;
}

const prune = autocommitStatement(
  (db, { keptDays }: { keptDays: number }) =>
    db
      .deleteFrom('webhook_replay')
      .where('status', '=', 'completed')
      .where('id', '<', sql<string>`'rpl_' || id_time(now() - ${keptDays} * interval '1 day')`)
      .returning('id'),
  { acrossTenants: 'queue' },
);
