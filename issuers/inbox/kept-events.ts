import { sql } from 'kysely';
import { ApiError } from '../../domain/api-error.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { autocommitStatement } from '../../platform/db/sql.ts';
import type { CommandContext } from '../../requests/command-context.ts';
import type { WhyWaiting } from './tables.ts';

// Events that the card network posted. An event is kept before it is answered, and waits until everything in
// it is taken (docs/decisions/card-networks.md).

/**
 * How many events may wait at once, and how many bytes of bodies. Past either, the network is asked to
 * repeat.
 */
export const MAX_WAITING_EVENTS = 50_000;
export const MAX_WAITING_EVENT_BYTES = 64 * 1024 * 1024;
/** How long nobody else takes an event that has been taken. */
const LEASE_MS = 60_000;
const MAX_PAUSE_MS = 300_000;

/** The context that an event's body is sealed for. */
export const eventContext = (id: string): string => `network-event/${id}`;

/**
 * Keeps an event, once however often it is posted.
 * @param event.eventId the network's id
 * @param event.body what `CardNetwork.readEvent` understands
 * @throws ApiError `unavailable` if too much is waiting already: the network has to repeat it
 */
export async function keepEvent(
  { orm, ring }: CommandContext,
  event: { network: string; eventId: string; body: Uint8Array },
): Promise<void> {
  const id = newId('nevt');
  const { network, eventId, body } = event;
  const [kept] = await keep(orm, {
    id,
    network,
    eventId,
    body: ring.seal(body, eventContext(id)),
    sizeBytes: body.length,
  });
  if (kept?.is_known) return;
  throw new ApiError('unavailable', {
    message: 'Too many events are waiting to be read already. Repeat this one later.',
    retryAfterSeconds: 60,
  });
}

interface KeptValues {
  id: string;
  network: string;
  eventId: string;
  body: Buffer;
  sizeBytes: number;
}

// Several at once may each see room for themselves, so the bounds can be passed by as many as are under way.
// An event that is kept by another process at the same moment is not seen here, but then the conflict says
// that it is known.
const keep = autocommitStatement(
  (_, values: KeptValues) => sql<{ is_known: boolean }>`
    WITH room AS (
      SELECT count(*) < ${sql.lit(MAX_WAITING_EVENTS)}
        AND coalesce(sum(size_bytes), 0) + ${values.sizeBytes}::integer <= ${sql.lit(MAX_WAITING_EVENT_BYTES)} AS is_left
      FROM network_event WHERE network = ${values.network} AND status = 'waiting'
    ), kept AS (
      INSERT INTO network_event (id, network, event_id, body, size_bytes)
      SELECT ${values.id}::text, ${values.network}::text, ${values.eventId}::text, ${values.body}::bytea,
        ${values.sizeBytes}::integer
      FROM room WHERE is_left
      ON CONFLICT (network, event_id) DO NOTHING
    )
    SELECT is_left OR EXISTS (SELECT FROM network_event
      WHERE network = ${values.network} AND event_id = ${values.eventId}) AS is_known FROM room`,
);

/** An event that a worker has taken. */
export interface TakenEvent {
  id: string;
  /** The network's id. */
  event_id: string;
  /** Sealed. */
  body: Buffer;
  /** This one included. */
  attempts: number;
}

/**
 * Takes events that are due, new ones first. Nobody else takes them for a minute, so what a process that died
 * had taken is taken again after that.
 */
export const takeDueEvents = autocommitStatement(
  (_, { network, limit }: { network: string; limit: number }) => sql<TakenEvent>`
    UPDATE network_event e
    SET attempts = e.attempts + 1, retry_after = now() + ${sql.lit(LEASE_MS)} * interval '1 millisecond'
    FROM (
      SELECT id FROM network_event
      WHERE network = ${network} AND status = 'waiting' AND retry_after < now()
      ORDER BY retry_after, id LIMIT ${limit} FOR NO KEY UPDATE SKIP LOCKED
    ) due
    WHERE e.id = due.id RETURNING e.id, e.event_id, e.body, e.attempts`,
);

/** Ends an event whose messages are all taken. One that was dismissed meanwhile stays so. */
export const endEvent = autocommitStatement((db, { id }: { id: string }) =>
  db
    .updateTable('network_event')
    .set({ status: 'done', reason: null, ended_at: sql`now()` })
    .where('id', '=', id)
    .where('status', '=', sql.lit<'waiting'>('waiting')),
);

/** Leaves an event for later, twice as long each time, up to five minutes. */
export async function leaveEvent(orm: Orm, { id, attempts }: TakenEvent, reason: WhyWaiting): Promise<void> {
  const pauseMs = Math.min(1_000 * 2 ** Math.min(attempts, 20), MAX_PAUSE_MS);
  await leave(orm, { id, attempts, reason, pauseMs });
}

// Only by whoever took it last: a process that was frozen must not delay it.
const leave = autocommitStatement(
  (db, values: { id: string; attempts: number; reason: WhyWaiting; pauseMs: number }) =>
    db
      .updateTable('network_event')
      .set({
        reason: values.reason,
        retry_after: sql`now() + ${values.pauseMs} * interval '1 millisecond'`,
      })
      .where('id', '=', values.id)
      .where('attempts', '=', values.attempts)
      .where('status', '=', sql.lit<'waiting'>('waiting')),
);

const PRUNED_AFTER = sql<string>`now() - interval '30 days'`;

/**
 * Deletes events 30 days after they ended, long after a network sends one again. @returns how many, at most
 * `limit`
 */
export async function pruneNetworkEvents(orm: Orm, limit: number): Promise<number> {
  return (await prune(orm, { limit })).length;
}

const prune = autocommitStatement((db, { limit }: { limit: number }) =>
  db
    .deleteFrom('network_event')
    .where('id', 'in', ({ selectFrom }) =>
      selectFrom('network_event')
        .select('id')
        .where('status', '<>', sql.lit<'waiting'>('waiting'))
        .where('ended_at', '<', PRUNED_AFTER)
        .orderBy('ended_at')
        .limit(limit)
        .forUpdate()
        .skipLocked(),
    )
    .returning('id'),
);
