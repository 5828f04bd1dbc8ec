import { sql } from 'kysely';
import { boundTime, firstId } from '../../accounts/clock.ts';
import { ApiError } from '../../domain/api-error.ts';
import { EVENTS_KEPT_DAYS, type EventType } from '../../domain/event.ts';
import type { Tenant } from '../../domain/mode.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { autocommitStatement, readStatement, writeStatement } from '../../platform/db/sql.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { lockAllowance, takeFromAllowance } from '../allowance.ts';
import { endpointDisabled, readEndpoint } from '../reads.ts';
import { REPLAY_COLUMNS, type WebhookReplayRow } from './resource.ts';

/**
 * How many events a replay can go through: they are counted before it begins, which has to end long before
 * its time limit.
 */
const MAX_EVENTS = 250_000;

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
 * Starts to send events of an account to an endpoint again. A worker puts them in line (continue.ts).
 * @throws ApiError `webhook_endpoint_not_found`, `invalid_state` if the endpoint is disabled, or another
 * replay of it is running;
 *   `rate_limited`, `validation_failed` if the range has too many events
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
  if (endpoint.status === 'disabled') throw endpointDisabled();
  const [running] = await findRunning(reader, { partnerId, mode, endpointId });
  if (running !== undefined) throw alreadyRunning(running.id);
  await transaction(orm, async (tx) => takeFromAllowance(tx, tenant, await lockAllowance(tx, tenant)));
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
  if (counted.is_too_wide) throw tooWide();
  return transaction(orm, async (tx) => {
    await lockAccount(tx, { partnerId });
    // Again, since it may have been disabled or deleted meanwhile.
    if ((await readEndpoint(tx, tenant, endpointId)).status === 'disabled') throw endpointDisabled();
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
    if (other !== undefined) throw alreadyRunning(other.id);
    throw new ApiError('invalid_state', {
      message: 'Another replay of this webhook endpoint has just ended. Try again.',
    });
  });
}

const alreadyRunning = (replayId: string) =>
  new ApiError('invalid_state', {
    message: `A replay of this webhook endpoint is running: ${replayId}. Wait until its status is completed, and then try again.`,
  });

const tooWide = () =>
  ApiError.ofField(
    'created_gte',
    `there are more than ${MAX_EVENTS.toLocaleString('en-US')} events from created_gte to created_lte: choose a shorter range, and replay the rest of it afterwards`,
  );

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

export interface MatchValues extends Tenant {
  endpointId: string;
  wanted: WebhookReplayRow['wanted'];
  /** Null for all. */
  eventTypes: readonly string[] | null;
  /** The endpoint's; null for all. */
  wantedTypes: readonly string[] | null;
}

/**
 * Whether an event `e` with the endpoint's delivery `d`, if it has one, is to be sent again. What is parked
 * is sent anyway, as the endpoint is enabled.
 */
export const isMatching = ({ endpointId, wanted, eventTypes, wantedTypes }: MatchValues) => sql<boolean>`
  (${wantedTypes}::text[] IS NULL OR e.type = ANY (${wantedTypes}::text[]))
  AND (${eventTypes}::text[] IS NULL OR e.type = ANY (${eventTypes}::text[]))
  AND coalesce(e.only_endpoint_id, ${endpointId}) = ${endpointId}
  AND e.except_endpoint_id IS DISTINCT FROM ${endpointId}
  AND CASE ${wanted}::text
    WHEN 'given_up' THEN coalesce(d.status, '') = 'given_up'
    WHEN 'undelivered' THEN coalesce(d.status, '') NOT IN ('delivered', 'pending', 'parked', 'retrying')
    ELSE coalesce(d.status, '') NOT IN ('pending', 'parked') END`;

interface RangeValues extends MatchValues {
  createdFrom: string | null;
  createdBefore: string | null;
  keptDays: number;
}

interface Counted {
  after_event_id: string;
  before_event_id: string;
  is_too_wide: boolean;
  matched: number;
}

// An id has the real time, so the ids alone say what is in the range of time
// (docs/decisions/sandbox-clock.md). Whether they are too many is asked of the index alone, before any
// delivery is looked at. The LIMIT 1 has each delivery found by its key, whatever PostgreSQL knows of the
// tables: another plan may take the square of the time.
const countMatching = readStatement((_, values: RangeValues) => {
  const { partnerId, mode, endpointId, createdFrom, createdBefore, keptDays } = values;
  return sql<Counted>`
  WITH range AS MATERIALIZED (
    SELECT greatest(${firstId('evt', values, createdFrom)},
        'evt_' || id_time(now() - ${keptDays} * interval '1 day') COLLATE "C") AS after_id,
      least('evt_' || id_time(now() + interval '1 ms') COLLATE "C",
        CASE WHEN ${createdBefore}::text IS NOT NULL THEN ${firstId('evt', values, createdBefore)} END) AS before_id
  )
  SELECT r.after_id AS after_event_id, r.before_id AS before_event_id, w.is_too_wide, c.matched
  FROM range r CROSS JOIN LATERAL (
    SELECT EXISTS (
      SELECT FROM event WHERE partner_id = ${partnerId} AND mode = ${mode}
        AND id > r.after_id AND id < r.before_id
      ORDER BY id OFFSET ${MAX_EVENTS} LIMIT 1) AS is_too_wide
  ) w CROSS JOIN LATERAL (
    SELECT (count(*) FILTER (WHERE ${isMatching(values)}))::int AS matched
    FROM (
      SELECT id, type, only_endpoint_id, except_endpoint_id FROM event
      WHERE NOT w.is_too_wide AND partner_id = ${partnerId} AND mode = ${mode}
        AND id > r.after_id AND id < r.before_id
    ) e LEFT JOIN LATERAL (
      SELECT status FROM delivery
      WHERE event_id = e.id AND endpoint_id = ${endpointId} AND partner_id = ${partnerId} AND mode = ${mode}
        LIMIT 1
    ) d ON true) c`;
});

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
    .returning(REPLAY_COLUMNS),
);

/** @throws ApiError `webhook_replay_not_found` */
export async function readWebhookReplay(
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
      .select(REPLAY_COLUMNS)
      .where('partner_id', '=', partnerId)
      .where('mode', '=', mode)
      .where('endpoint_id', '=', endpointId)
      .where('id', '=', replayId),
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
