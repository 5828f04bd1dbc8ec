import { type RawBuilder, sql } from 'kysely';
import { unknownId } from '../../commands/refusal.ts';
import type { KeyRing } from '../../crypto/key-ring.ts';
import { lowestId } from '../../crypto/new-id.ts';
import { openAnswerStart } from '../../crypto/webhooks.ts';
import { newestRows } from '../../db/newest.ts';
import type { Orm } from '../../db/orm.ts';
import { readStatement } from '../../db/sql.ts';
import type { Row } from '../../db/tables.ts';
import { DeliveryStatus } from '../../domain/event.ts';
import { Mode } from '../../domain/mode.ts';
import { presentAttempt } from '../../resources/event.ts';
import { EventType } from '../../resources/event-types.ts';
import { deliverWebhookWorkflowId } from '../../workflows/messages.ts';

/** An event and its delivery, as operators see it; without its data, which can be personal. */
interface WebhookResource {
  id: string;
  object: 'event';
  partner_id: string;
  partner_name: string;
  mode: Mode;
  type: string;
  status: DeliveryStatus;
  attempt_count: number;
  next_attempt_at: string | null;
  /** The last attempt's. */
  last_error: string | null;
  created: string;
}

interface WebhookFilter {
  status: DeliveryStatus | null;
  partnerId: string | null;
  since: Date | null;
  limit: number;
}

/** Newest first. */
export async function readWebhooks(orm: Orm, filter: WebhookFilter): Promise<WebhookResource[]> {
  const { partnerId, since, limit } = filter;
  const range = { from: lowestId('evt', since ?? new Date(0)), limit };
  const em = orm.em.fork();
  const rows =
    partnerId === null
      ? await listAll(filter)(em, range)
      : await selectPartnerWebhooks(filter)(em, { ...range, partnerId });
  return rows.map(presentWebhook);
}

/** Event ids from this one on. */
interface Range {
  from: string;
  limit: number;
}

const listAll = ({ status }: WebhookFilter) =>
  readStatement(
    (_, { from, limit }: Range) =>
      // A literal, so that the partial index of waiting events can be used.
      selectShown(sql`SELECT event_id FROM delivery WHERE event_id >= ${from}
      ${status === null ? sql`` : sql`AND status = ${sql.lit(status)}`} ORDER BY event_id DESC LIMIT ${limit}`),
    { acrossTenants: 'operator' },
  );

/** Reads a page of each mode, status and type through their index, and keeps the newest. */
const selectPartnerWebhooks = ({ status, limit: maxRows }: WebhookFilter) =>
  readStatement(
    (_, { partnerId, from, limit }: Range & { partnerId: string }) => {
      const one = newestRows({
        table: 'delivery',
        columns: ['event_id'],
        where: {
          partner_id: partnerId,
          mode: sql.ref('wanted_mode.mode'),
          status: sql.ref('wanted_status.status'),
          type: sql.ref('wanted_type.type'),
        },
        id: 'event_id',
        from,
        limit,
        maxRows,
      });
      const statuses = status === null ? DeliveryStatus.options : [status];
      return selectShown(sql`SELECT one.event_id FROM unnest(${Mode.options}::text[]) wanted_mode (mode)
      CROSS JOIN unnest(${statuses}::text[]) wanted_status (status)
      CROSS JOIN unnest(${EventType.options}::text[]) wanted_type (type)
      CROSS JOIN LATERAL (${one}) one
      ORDER BY one.event_id DESC LIMIT ${limit}`);
    },
    { acrossTenants: 'operator' },
  );

/** The columns to show, for the events whose ids `found` returns. LIMIT 1 keeps the planner from joining whole tables. */
const selectShown = (found: RawBuilder<unknown>) => sql<WebhookRow>`
  SELECT ${SHOWN} FROM (${found}) found
    CROSS JOIN LATERAL (SELECT event_id, status, attempt_count, next_attempt_at FROM delivery
      WHERE event_id = found.event_id LIMIT 1) d
    CROSS JOIN LATERAL (SELECT id, partner_id, mode, type, created_at FROM event WHERE id = found.event_id LIMIT 1) e
  ORDER BY d.event_id DESC`;

interface WebhookRow
  extends Row<'event', 'id' | 'partner_id' | 'mode' | 'type' | 'created_at'>,
    Row<'delivery', 'status' | 'attempt_count' | 'next_attempt_at'> {
  last_error: string | null;
  partner_name: string;
}

/** The columns of a WebhookRow, from tables `event` e and `delivery` d. */
const SHOWN = sql`e.id, e.partner_id, (SELECT name FROM partner WHERE id = e.partner_id) AS partner_name, e.mode, e.type, e.created_at, d.status, d.attempt_count, d.next_attempt_at,
  (SELECT a.error FROM delivery_attempt a WHERE a.event_id = d.event_id AND a.number = d.attempt_count) AS last_error`;

type EndpointStatus = Row<'webhook_endpoint', 'status'>['status'];

/** An event with every attempt to send it, and its endpoint as it is now. */
export interface WebhookDetail extends WebhookResource {
  attempts: (ReturnType<typeof presentAttempt> & { answer_start: string | null })[];
  endpoint: { url: string; status: EndpointStatus } | null;
  workflow_id: string;
}

/**
 * @param ring null if the keys are not known: receivers' answers are then left out
 * @throws Refusal if there is no such event
 */
export async function readWebhook(orm: Orm, ring: KeyRing | null, eventId: string): Promise<WebhookDetail> {
  const em = orm.em.fork();
  const [row] = await findOne(em, { eventId });
  if (row === undefined)
    throw unknownId('evt', eventId, 'run "operator webhook list"; events are kept for 30 days');
  const attempts = await selectAttempts(em, { eventId });
  const { url, endpoint_status: status } = row;
  return {
    ...presentWebhook(row),
    attempts: attempts.map((attempt) => ({
      ...presentAttempt(attempt),
      answer_start: ring && attempt.answer_start && openAnswerStart(ring, eventId, attempt.answer_start),
    })),
    endpoint: url === null ? null : { url, status },
    workflow_id: deliverWebhookWorkflowId(eventId),
  };
}

interface WebhookWithEndpointRow extends WebhookRow {
  url: string | null;
  endpoint_status: EndpointStatus;
}

const findOne = readStatement(
  (_, { eventId }: { eventId: string }) => sql<WebhookWithEndpointRow>`
  SELECT ${SHOWN}, w.url, w.status AS endpoint_status
  FROM delivery d JOIN event e ON e.id = d.event_id
    LEFT JOIN webhook_endpoint w ON w.partner_id = d.partner_id AND w.mode = d.mode
  WHERE d.event_id = ${eventId}`,
  { acrossTenants: 'operator' },
);

const selectAttempts = readStatement((db, { eventId }: { eventId: string }) =>
  db
    .selectFrom('delivery_attempt')
    .select(['number', 'delivered', 'http_status', 'started_at', 'duration_ms', 'error', 'answer_start'])
    .where('event_id', '=', eventId)
    .orderBy('number'),
);

function presentWebhook(row: WebhookRow): WebhookResource {
  return {
    id: row.id,
    object: 'event',
    partner_id: row.partner_id,
    partner_name: row.partner_name,
    mode: row.mode,
    type: row.type,
    status: row.status,
    attempt_count: row.attempt_count,
    next_attempt_at: row.next_attempt_at === null ? null : new Date(row.next_attempt_at).toISOString(),
    last_error: row.last_error,
    created: new Date(row.created_at).toISOString(),
  };
}
