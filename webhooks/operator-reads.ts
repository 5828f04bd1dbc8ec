import { type RawBuilder, sql } from 'kysely';
import { DeliveryStatus, EventType } from '../domain/event.ts';
import { Mode } from '../domain/mode.ts';
import { Refusal, unknownId } from '../domain/refusal.ts';
import type { KeyRing } from '../platform/crypto/key-ring.ts';
import { lowestId } from '../platform/crypto/new-id.ts';
import type { Row } from '../platform/db/entities.ts';
import { newestRows } from '../platform/db/newest.ts';
import type { Orm } from '../platform/db/orm.ts';
import { readStatement } from '../platform/db/sql.ts';
import { deliverWebhookWorkflowId } from '../workflows/messages.ts';
import { presentAttempt } from './resource.ts';
import { openAnswerStart } from './secrets.ts';

/** An event and its delivery to one endpoint, as operators see it; without its data, which can be personal. */
interface WebhookResource {
  id: string;
  /** Null if no endpoint wanted it. */
  endpoint_id: string | null;
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
  type: EventType | null;
  partnerId: string | null;
  cardId: string | null;
  /** Null for all endpoints. */
  endpointId: string | null;
  since: Date | null;
  limit: number;
}

/** Newest first, a row for each endpoint. */
export async function readWebhooks(orm: Orm, filter: WebhookFilter): Promise<WebhookResource[]> {
  const { type, partnerId, cardId, endpointId, since, limit } = filter;
  const range = { from: lowestId('evt', since ?? new Date(0)), type, endpointId, limit };
  const em = orm.em.fork();
  if (cardId !== null)
    return (await selectCardWebhooks(filter)(em, { ...range, partnerId, cardId })).map(presentWebhook);
  const rows =
    partnerId === null
      ? await listAll(filter)(em, range)
      : await selectPartnerWebhooks(filter)(em, { ...range, partnerId });
  return rows.map(presentWebhook);
}

/** Event ids from this one on. */
interface Range {
  from: string;
  type: EventType | null;
  endpointId: string | null;
  limit: number;
}

const listAll = ({ status }: WebhookFilter) =>
  readStatement(
    (_, { from, type, endpointId, limit }: Range) =>
      // A literal, so that the partial index of waiting events can be used.
      selectShown(sql`SELECT event_id, endpoint_id FROM delivery WHERE event_id >= ${from}
      AND (${endpointId}::text IS NULL OR endpoint_id = ${endpointId}) AND (${type}::text IS NULL OR type = ${type})
      ${status === null ? sql`` : sql`AND status = ${sql.lit(status)}`} ORDER BY event_id DESC, endpoint_id LIMIT ${limit}`),
    { acrossTenants: 'operator' },
  );

/** Reads a page of each mode, status and type through their index, and keeps the newest. */
const selectPartnerWebhooks = ({ status, type, limit: maxRows }: WebhookFilter) =>
  readStatement(
    (_, { partnerId, endpointId, from, limit }: Range & { partnerId: string }) => {
      const one = newestRows({
        table: 'delivery',
        columns: ['event_id', 'endpoint_id'],
        where: {
          partner_id: partnerId,
          mode: sql.ref('wanted_mode.mode'),
          status: sql.ref('wanted_status.status'),
          type: sql.ref('wanted_type.type'),
        },
        id: 'event_id',
        onlyIf: sql`(${endpointId}::text IS NULL OR endpoint_id = ${endpointId})`,
        from,
        limit,
        maxRows,
      });
      const statuses = status === null ? DeliveryStatus.options : [status];
      const types = type === null ? EventType.options : [type];
      return selectShown(sql`SELECT one.event_id, one.endpoint_id FROM unnest(${Mode.options}::text[]) wanted_mode (mode)
      CROSS JOIN unnest(${statuses}::text[]) wanted_status (status)
      CROSS JOIN unnest(${types}::text[]) wanted_type (type)
      CROSS JOIN LATERAL (${one}) one
      ORDER BY one.event_id DESC, one.endpoint_id LIMIT ${limit}`);
    },
    { acrossTenants: 'operator' },
  );

/** Reads the events of the card through their index. */
const selectCardWebhooks = ({ status }: WebhookFilter) =>
  readStatement(
    (
      _,
      {
        from,
        type,
        partnerId,
        cardId,
        endpointId,
        limit,
      }: Range & { partnerId: string | null; cardId: string },
    ) =>
      selectShown(sql`SELECT d.event_id, d.endpoint_id FROM event e JOIN delivery d ON d.event_id = e.id
      WHERE e.card_id = ${cardId} AND e.id >= ${from} AND (${partnerId}::text IS NULL OR e.partner_id = ${partnerId})
      AND (${endpointId}::text IS NULL OR d.endpoint_id = ${endpointId}) AND (${type}::text IS NULL OR e.type = ${type})
      ${status === null ? sql`` : sql`AND d.status = ${sql.lit(status)}`} ORDER BY d.event_id DESC, d.endpoint_id LIMIT ${limit}`),
    { acrossTenants: 'operator' },
  );

/** The columns to show, for the events whose ids `found` returns. LIMIT 1 keeps the planner from joining whole tables. */
const selectShown = (found: RawBuilder<unknown>) => sql<WebhookRow>`
  SELECT ${SHOWN} FROM (${found}) found
    CROSS JOIN LATERAL (SELECT event_id, endpoint_id, status, attempt_count, next_attempt_at FROM delivery
      WHERE event_id = found.event_id AND endpoint_id = found.endpoint_id LIMIT 1) d
    CROSS JOIN LATERAL (SELECT id, partner_id, mode, type, created_at FROM event WHERE id = found.event_id LIMIT 1) e
  ORDER BY d.event_id DESC, d.endpoint_id`;

interface WebhookRow
  extends Row<'event', 'id' | 'partner_id' | 'mode' | 'type' | 'created_at'>,
    Row<'delivery', 'endpoint_id' | 'status' | 'attempt_count' | 'next_attempt_at'> {
  last_error: string | null;
  partner_name: string;
}

/** The columns of a WebhookRow, from tables `event` e and `delivery` d. */
const SHOWN = sql`e.id, e.partner_id, (SELECT name FROM partner WHERE id = e.partner_id) AS partner_name, e.mode, e.type, e.created_at,
  d.endpoint_id, d.status, d.attempt_count, d.next_attempt_at,
  (SELECT a.error FROM delivery_attempt a
   WHERE a.event_id = d.event_id AND a.endpoint_id = d.endpoint_id AND a.number = d.attempt_count) AS last_error`;

type EndpointStatus = Row<'webhook_endpoint', 'status'>['status'];

/** An event with every attempt to send it to an endpoint, that endpoint as it is now, and the deliveries to all of them. */
export interface WebhookDetail extends WebhookResource {
  attempts: (ReturnType<typeof presentAttempt> & { answer_start: string | null })[];
  endpoint: { url: string; status: EndpointStatus } | null;
  deliveries: { endpoint_id: string; status: DeliveryStatus; attempt_count: number }[];
  workflow_id: string;
}

/**
 * @param ring null if the keys are not known: receivers' answers are then left out
 * @param wanted.endpointId null for the oldest endpoint that the event is for
 * @throws Refusal if there is no such event, or it is not for the endpoint
 */
export async function readWebhook(
  orm: Orm,
  ring: KeyRing | null,
  { eventId, endpointId }: { eventId: string; endpointId: string | null },
): Promise<WebhookDetail> {
  const em = orm.em.fork();
  const rows = await findAll(em, { eventId });
  if (rows.length === 0)
    throw unknownId('evt', eventId, 'run "operator webhook list"; events are kept for 30 days');
  const row = rows.find(({ endpoint_id }) => endpointId === null || endpoint_id === endpointId);
  if (row === undefined)
    throw new Refusal(`${eventId} has no delivery to ${endpointId}: run "operator webhook show ${eventId}".`);
  const attempts = await selectAttempts(em, { eventId, endpointId: row.endpoint_id });
  const { url, endpoint_status: status } = row;
  return {
    ...presentWebhook(row),
    attempts: attempts.map((attempt) => ({
      ...presentAttempt(attempt),
      answer_start: ring && attempt.answer_start && openAnswerStart(ring, eventId, attempt.answer_start),
    })),
    endpoint: url === null ? null : { url, status },
    deliveries: rows
      .filter(({ endpoint_id }) => endpoint_id !== '')
      .map((each) => ({
        endpoint_id: each.endpoint_id,
        status: each.status,
        attempt_count: each.attempt_count,
      })),
    workflow_id: deliverWebhookWorkflowId(eventId, row.endpoint_id),
  };
}

interface WebhookWithEndpointRow extends WebhookRow {
  url: string | null;
  endpoint_status: EndpointStatus;
}

const findAll = readStatement(
  (_, { eventId }: { eventId: string }) => sql<WebhookWithEndpointRow>`
  SELECT ${SHOWN}, w.url, w.status AS endpoint_status
  FROM delivery d JOIN event e ON e.id = d.event_id
    LEFT JOIN webhook_endpoint w ON w.id = d.endpoint_id
  WHERE d.event_id = ${eventId} ORDER BY d.endpoint_id`,
  { acrossTenants: 'operator' },
);

const selectAttempts = readStatement((db, { eventId, endpointId }: { eventId: string; endpointId: string }) =>
  db
    .selectFrom('delivery_attempt')
    .select(['number', 'delivered', 'http_status', 'started_at', 'duration_ms', 'error', 'answer_start'])
    .where('event_id', '=', eventId)
    .where('endpoint_id', '=', endpointId)
    .orderBy('number'),
);

function presentWebhook(row: WebhookRow): WebhookResource {
  return {
    id: row.id,
    endpoint_id: row.endpoint_id === '' ? null : row.endpoint_id,
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
