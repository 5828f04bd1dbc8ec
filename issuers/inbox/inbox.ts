import { sql } from 'kysely';
import { ApiError } from '../../domain/api-error.ts';
import type { Row } from '../../platform/db/entities.ts';
import { passedTimes } from '../../platform/db/has-passed.ts';
import { backoffMs, takeDue } from '../../platform/db/leased-queue.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { autocommitStatement, type Transactor, writeStatement } from '../../platform/db/sql.ts';
import type { CommandContext } from '../../requests/command-context.ts';
import type { NamedObject } from '../card-network.ts';
import type { InboxRoom } from './room.ts';
import type { WaitingElement, WhyWaiting } from './tables.ts';

// What has changed at the card network, one row a payment or transfer (docs/decisions/inbox.md). A message is
// only a reason to look, so any number of them about one thing are one row, with the newest state of it.

/** How long nobody else looks at what a worker has taken. */
const LEASE_MS = 60_000;
/** How long it rests at most after an attempt that did not end it. */
const MAX_PAUSE_MS = 300_000;

/** A payment is read again within a day by the clock of whoever booked it, which may differ from PostgreSQL's. */
const LONGEST_UNREAD_MS = 172_800_000;
/** How many of those that are read again by themselves may wait before more are. */
const MAX_DUE_TO_READ_AGAIN = 1_000;
/**
 * Accounts take turns: what arrives is due since ten minutes ago, and each further one of an account that waits ten
 * milliseconds later. What is tried again is taken after it.
 */
const FRESH = sql`now() - interval '10 minutes'`;
const TURN = sql`interval '10 milliseconds'`;

/** The context that a state is sealed for. */
export const stateContext = (id: string): string => `network-inbox/${id}`;

/**
 * Notes that something has changed, before the network is answered.
 * @throws ApiError `unavailable` if too much is waiting already: the network has to repeat it
 */
export async function expectObject(
  { orm, ring, room }: CommandContext & { room: InboxRoom },
  network: string,
  { kind, id, networkCardId, state }: NamedObject,
): Promise<void> {
  const sizeBytes = state?.body.length ?? 0;
  const hasRoom = await room.has(sizeBytes);
  const [noted] = await note(orm, {
    id,
    network,
    kind,
    networkCardId,
    body: state && ring.seal(state.body, stateContext(id)),
    sizeBytes,
    version: state && JSON.stringify(state.version),
    hasRoom,
  });
  if (noted === undefined) throw tooMuch();
  if (noted.is_new) room.take(sizeBytes);
}

const tooMuch = (): ApiError =>
  new ApiError('unavailable', {
    message: 'Too much is waiting to be read already. Repeat this later.',
    retryAfterSeconds: 60,
  });

type NotedValues = Omit<NamedObject, 'state'> & {
  network: string;
  body: Buffer | null;
  sizeBytes: number;
  version: string | null;
  hasRoom: boolean;
};

// What is waiting anyway needs no room. If either comes without a state, neither comparison holds: the
// payment is read then, because what the state lacks may be what was to be told.
const note = autocommitStatement(
  (_, values: NotedValues) => sql<{ is_new: boolean }>`
    WITH account AS (
      SELECT partner_id FROM card WHERE network_card_id = ${values.networkCardId}::text AND mode = 'live'
      UNION ALL SELECT partner_id FROM payment WHERE payment_id = ${values.id}::text AND mode = 'live' LIMIT 1
    ), last AS (
      SELECT max(w.retry_after) AS due FROM network_inbox w JOIN account USING (partner_id) WHERE w.attempts = 0
    )
    INSERT INTO network_inbox AS i (id, network, kind, network_card_id, partner_id, retry_after, body, size_bytes, version)
    SELECT ${values.id}::text, ${values.network}::text, ${values.kind}::text, ${values.networkCardId}::text,
      (SELECT partner_id FROM account), greatest(${FRESH}, last.due + ${TURN}),
      ${values.body}::bytea, ${values.sizeBytes}::integer, ${values.version}::jsonb
    FROM last WHERE ${values.hasRoom}::boolean OR EXISTS (SELECT FROM network_inbox WHERE id = ${values.id})
    ON CONFLICT (id) DO UPDATE SET seq = DEFAULT, retry_after = least(i.retry_after, now()),
      network_card_id = coalesce(excluded.network_card_id, i.network_card_id),
      body = CASE WHEN excluded.version >= i.version THEN excluded.body WHEN excluded.version < i.version THEN i.body END,
      size_bytes = CASE WHEN excluded.version >= i.version THEN excluded.size_bytes
        WHEN excluded.version < i.version THEN i.size_bytes ELSE 0 END,
      version = CASE WHEN excluded.version >= i.version THEN excluded.version
        WHEN excluded.version < i.version THEN i.version END
    RETURNING xmax = 0 AS is_new`,
  { acrossTenants: 'network' },
);

interface KeptPayment {
  id: string;
  networkCardId: string;
  reason: WhyWaiting;
  /** What a person may have to decide. */
  element: WaitingElement;
  hasRoom: boolean;
}

/**
 * Has a payment of the simulated network wait, in the transaction that records its message.
 * @throws ApiError `unavailable` if too much is waiting already: the network has to repeat it
 */
export async function keepPayment(tx: Transactor, { element, ...values }: KeptPayment): Promise<void> {
  const [kept] = await keep(tx, { ...values, elements: JSON.stringify([element]) });
  if (kept === undefined) throw tooMuch();
}

const keep = writeStatement(
  (_, values: Omit<KeptPayment, 'element'> & { elements: string }) => sql<{ id: string }>`
    INSERT INTO network_inbox AS i (id, network, kind, network_card_id, reason, elements, retry_after)
    SELECT ${values.id}::text, 'simulated', 'payment', ${values.networkCardId}::text, ${values.reason}::text,
      ${values.elements}::jsonb, now() + interval '2 seconds'
    WHERE ${values.hasRoom}::boolean
    ON CONFLICT (id) DO UPDATE SET seq = DEFAULT, reason = excluded.reason, elements = i.elements || excluded.elements
    RETURNING id`,
);

/** What a worker has taken. */
export type TakenObject = Row<
  'network_inbox',
  'id' | 'kind' | 'seq' | 'body' | 'network_card_id' | 'attempts'
> & {
  /** By PostgreSQL's clock, which also says when a payment is to be read again. */
  taken_at: string;
};

/**
 * Takes what is due, what has waited longest first. Nobody else takes it for a minute, so what a process that
 * died had taken is taken again after that.
 */
export const takeDueObjects = autocommitStatement(
  (_, { network, limit }: { network: string; limit: number }) =>
    takeDue('network_inbox', {
      isWaiting: sql`q.network = ${network}`,
      leaseMs: sql.lit(LEASE_MS),
      longestMs: MAX_PAUSE_MS,
      taken: sql<TakenObject>`q.id, q.kind, q.seq, q.body, q.network_card_id, q.attempts, now() AS taken_at`,
      limit,
    }),
);

/**
 * Has payments read again whose time has come, whether or not the network says anything of them. They wait behind
 * what arrives, which has its account; however much of that there is, it does not keep them out.
 */
export const takePaymentsToRead = autocommitStatement(
  (_, { network, limit }: { network: string; limit: number }) => sql<{ payment_id: string }>`
    WITH due AS (
      SELECT later.* FROM ${passedTimes(LONGEST_UNREAD_MS)} CROSS JOIN LATERAL (
        SELECT q.mode, q.payment_id FROM payment q WHERE q.read_after BETWEEN time.earliest AND time.latest
          AND (SELECT count(*) FROM network_inbox
            WHERE network = ${network} AND retry_after <= now() AND partner_id IS NULL) < ${sql.lit(MAX_DUE_TO_READ_AGAIN)}
        ORDER BY q.read_after LIMIT ${limit} FOR NO KEY UPDATE OF q SKIP LOCKED) later
      LIMIT ${limit}
    ), next AS (
      UPDATE payment y SET read_after = now() + interval '1 day' FROM due
      WHERE y.mode = due.mode AND y.payment_id = due.payment_id RETURNING y.payment_id
    ), noted AS (
      INSERT INTO network_inbox AS i (id, network, kind) SELECT payment_id, ${network}::text, 'payment' FROM next
      ON CONFLICT (id) DO UPDATE SET seq = DEFAULT, retry_after = least(i.retry_after, now()), body = NULL, size_bytes = 0, version = NULL
    )
    SELECT payment_id FROM next`,
  { acrossTenants: 'queue' },
);

/** Makes what waits for a card due at once. */
export const hurryCard = autocommitStatement((db, { networkCardId }: { networkCardId: string }) =>
  db
    .updateTable('network_inbox')
    .set({ retry_after: sql`least(retry_after, now())` })
    .where('network_card_id', '=', networkCardId),
);

/** Makes a payment or a transfer due at once. */
export const makeDue = writeStatement((db, { id }: { id: string }) =>
  db
    .updateTable('network_inbox')
    .set({ retry_after: sql`least(retry_after, now())` })
    .where('id', '=', id)
    .returning('id'),
);

const DUE_AT_ONCE = sql`retry_after = ${FRESH}, reason = NULL, attempts = 0, elements = '[]'`;

/**
 * Ends what was looked at, with what that has booked. What has arrived since then is due at once.
 */
export const endObject = writeStatement(
  (_, { id, seq }: Pick<TakenObject, 'id' | 'seq'>) => sql`
    WITH ended AS (DELETE FROM network_inbox WHERE id = ${id} AND seq = ${seq} RETURNING id)
    UPDATE network_inbox SET ${DUE_AT_ONCE} WHERE id = ${id} AND NOT EXISTS (SELECT FROM ended)`,
);

/** Has the rest of what was looked at taken at once. */
export const goOnWithObject = writeStatement(
  (_, { id }: Pick<TakenObject, 'id'>) => sql`UPDATE network_inbox SET ${DUE_AT_ONCE} WHERE id = ${id}`,
);

/** Why something can't be booked now, and what a person may have to decide of it. */
export interface NotBooked {
  reason: WhyWaiting;
  /** The network's id of its card; null if that is not known. */
  networkCardId: string | null;
  elements: readonly WaitingElement[];
}

/** Leaves something for later: unless somebody says how long, twice as long each time, up to five minutes. */
export async function leaveObject(
  orm: Orm,
  { id, seq, attempts }: TakenObject,
  { reason, networkCardId, elements }: NotBooked,
  pauseMs = backoffMs(attempts, MAX_PAUSE_MS),
): Promise<void> {
  await leave(orm, {
    id,
    seq,
    attempts,
    reason,
    networkCardId,
    elements: JSON.stringify(elements),
    pauseMs,
  });
}

// Only by whoever took it last: a process that was frozen must not delay it. What has arrived since then is
// due already.
const leave = autocommitStatement(
  (
    _,
    values: Pick<TakenObject, 'id' | 'seq' | 'attempts'> &
      Omit<NotBooked, 'elements'> & { elements: string; pauseMs: number },
  ) => sql`
    UPDATE network_inbox SET reason = ${values.reason}, elements = ${values.elements}::jsonb,
      network_card_id = coalesce(${values.networkCardId}, network_card_id),
      retry_after = CASE WHEN seq = ${values.seq} THEN now() + ${values.pauseMs} * interval '1 millisecond' ELSE retry_after END
    WHERE id = ${values.id} AND attempts = ${values.attempts}`,
);
