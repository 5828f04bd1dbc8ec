import { sql } from 'kysely';
import { parseJson } from '../../domain/parse-json.ts';
import { unknownId } from '../../domain/refusal.ts';
import type { KeyRing } from '../../platform/crypto/key-ring.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { readStatement } from '../../platform/db/sql.ts';
import { eventContext } from './kept-events.ts';
import type { NetworkEventStatus, WhyWaiting } from './tables.ts';

/** An event that the card network posted, and that was kept to be read. */
export interface NetworkEvent {
  id: string;
  network: string;
  network_event_id: string;
  status: NetworkEventStatus;
  /** Why the last attempt did not end it; null if none has failed. */
  reason: WhyWaiting | null;
  attempts: number;
  created: string;
  ended_at: string | null;
}

interface EventFilter {
  status: NetworkEventStatus;
  before: string | null;
  /** At most 10,001. */
  limit: number;
}

/** Newest first. */
export async function readNetworkEvents(orm: Orm, filter: EventFilter): Promise<NetworkEvent[]> {
  const { status, before, limit } = filter;
  return (await selectNewest(orm.em.fork(), { status, before, limit })).map(present);
}

/** @throws Refusal if there is none, Error if its key is not in the ring */
export async function readNetworkEvent(
  orm: Orm,
  ring: KeyRing,
  id: string,
): Promise<NetworkEvent & { body: unknown }> {
  const [row] = await withId(orm.em.fork(), { id });
  if (row === undefined) throw unknownId('nevt', id, 'run "operator network-event list"');
  return { ...present(row), body: parseJson(ring.openBytes(row.body, eventContext(id))) };
}

type EventRow = Omit<NetworkEvent, 'created'> & { created_at: string; body: Buffer };

const EVENT = sql`SELECT id, network, event_id AS network_event_id, status, reason, attempts, created_at, ended_at, body
  FROM network_event`;

const selectNewest = readStatement(
  (_, { status, before, limit }: EventFilter) => sql<EventRow>`
    ${EVENT} WHERE status = ${status} AND (${before}::text IS NULL OR id < ${before}) ORDER BY id DESC LIMIT ${limit}`,
);

const withId = readStatement((_, { id }: { id: string }) => sql<EventRow>`${EVENT} WHERE id = ${id}`);

function present({ created_at, ended_at, body: _, ...row }: EventRow): NetworkEvent {
  return {
    ...row,
    created: new Date(created_at).toISOString(),
    ended_at: ended_at === null ? null : new Date(ended_at).toISOString(),
  };
}
