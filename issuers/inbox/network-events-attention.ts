import { sql } from 'kysely';
import type { Orm } from '../../platform/db/orm.ts';
import { readStatement } from '../../platform/db/sql.ts';
import { type AttentionItem, atIssuer } from '../../platform/monitoring/attention-item.ts';
import { MAX_WAITING_EVENT_BYTES, MAX_WAITING_EVENTS } from './kept-events.ts';
import type { WhyWaiting } from './tables.ts';

/** If more than this wait for the same reason, they share one line. */
const MAX_SINGLE = 20;
/** How long an event waits before it needs attention. */
const PATIENCE_MINUTES = 10;

/**
 * Events of the card network that could not be read for ten minutes: one item each, or one for a reason that
 * many have.
 */
export async function readUnreadEvents(orm: Orm): Promise<AttentionItem[]> {
  const rows = await unread(orm.em.fork(), { maxSingle: MAX_SINGLE });
  return rows.map(({ id, network, event_id, reason, count, since }) => ({
    kind: 'network_event',
    id: id ?? reason ?? 'not_tried',
    partner_id: null,
    mode: 'live',
    since: new Date(since).toISOString(),
    reason:
      (id === null
        ? `${count} events of ${network} wait to be read: `
        : `an event of ${network} waits to be read: `) + WHY[reason ?? 'not_tried'],
    ...(event_id !== null && { at_issuer: atIssuer({ event: event_id }) }),
    command:
      id === null ? 'npm run operator -- network-event list' : `npm run operator -- network-event show ${id}`,
    or_command: id === null ? null : `npm run operator -- network-event dismiss ${id} --reason "…"`,
    workflow_id: null,
  }));
}

const WHY: Record<WhyWaiting | 'not_tried', string> = {
  network_unavailable: 'the network does not answer about it. It is tried again at least every five minutes',
  not_readable: "this release can't read it; the worker's log says why",
  not_taken: "something in it could not be taken; the worker's log says why",
  not_tried: 'no worker has tried. Check that workers for cards are running, with the same CARD_NETWORK',
};

interface UnreadRow {
  /** Null for an item that stands for all of the reason's events. */
  id: string | null;
  network: string;
  /** The network's. */
  event_id: string | null;
  reason: WhyWaiting | null;
  count: number;
  since: string;
}

const unread = readStatement(
  (_, { maxSingle }: { maxSingle: number }) => sql<UnreadRow>`
    WITH event AS MATERIALIZED (
      SELECT id, network, event_id, reason, created_at FROM network_event
      WHERE status = 'waiting' AND created_at < now() - ${sql.lit(PATIENCE_MINUTES)} * interval '1 minute'
    ), counted AS (
      SELECT network, reason, count(*)::int AS count, min(created_at) AS since FROM event GROUP BY network, reason
    )
    SELECT e.id, e.network, e.event_id, e.reason, n.count, e.created_at AS since
    FROM counted n JOIN event e ON e.network = n.network AND e.reason IS NOT DISTINCT FROM n.reason
    WHERE n.count <= ${maxSingle}
    UNION ALL
    SELECT NULL, network, NULL, reason, count, since FROM counted WHERE count > ${maxSingle}`,
);

export interface WaitingEvents {
  events: number;
  /** How much of the room for them is taken. */
  roomUsed: number;
  /** How long the oldest has waited. */
  oldestSeconds: number;
}

/** What waits to be read, for the metrics. */
export async function readWaitingEvents(orm: Orm): Promise<WaitingEvents> {
  const [row] = await totals(orm.em.fork(), {});
  const { events, bytes, oldest_seconds: oldestSeconds } = row ?? { events: 0, bytes: 0, oldest_seconds: 0 };
  const roomUsed = Math.max(events / MAX_WAITING_EVENTS, bytes / MAX_WAITING_EVENT_BYTES);
  return { events, roomUsed, oldestSeconds };
}

const totals = readStatement(
  () => sql<{ events: number; bytes: number; oldest_seconds: number }>`
    SELECT count(*)::int AS events, coalesce(sum(size_bytes), 0)::int AS bytes,
      coalesce(extract(epoch FROM now() - min(created_at)), 0)::float8 AS oldest_seconds
    FROM network_event WHERE status = 'waiting'`,
);
