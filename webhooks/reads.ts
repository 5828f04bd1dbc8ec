import { type ExpressionBuilder, sql } from 'kysely';
import { ApiError } from '../domain/api-error.ts';
import { DeliveryStatus, EventType } from '../domain/event.ts';
import { isoTime } from '../domain/iso-time.ts';
import { Mode, type Tenant } from '../domain/mode.ts';
import { Refusal, unknownId } from '../domain/refusal.ts';
import type { KeyRing } from '../platform/crypto/key-ring.ts';
import { lowestId } from '../platform/crypto/new-id.ts';
import type { Row, Tables } from '../platform/db/entities.ts';
import { newestRows } from '../platform/db/newest.ts';
import type { Orm } from '../platform/db/orm.ts';
import { anyOf, type Reader, readStatement } from '../platform/db/sql.ts';
import { deliverWebhookWorkflowId } from '../workflows/messages.ts';
import { ENDPOINT_COLUMNS, type WebhookEndpointRow } from './endpoint-resource.ts';
import { MAX_ATTEMPTS_SHOWN, presentAttempt } from './resource.ts';
import { openAnswerStart } from './secrets.ts';

interface WebhookFilter {
  status: DeliveryStatus | null;
  type: EventType | null;
  partner: string | null;
  card: string | null;
  endpoint: string | null;
  since: Date | null;
  limit: number;
}

/**
 * Events and their deliveries, newest first, a row for each endpoint; without their data, which can be
 * personal.
 */
export async function readWebhooks(orm: Orm, filter: WebhookFilter) {
  const { type, partner, card, endpoint, since, limit } = filter;
  const from = lowestId('evt', since ?? new Date(0));
  const rows = await listWith(filter)(orm.em.fork(), { from, type, partner, card, endpoint, limit });
  return rows.map(present);
}

/** Event ids from this one on. */
interface Wanted extends Omit<WebhookFilter, 'status' | 'since'> {
  from: string;
}

// The status is a literal, so that the partial index of waiting events can be used.
const listWith = (filter: WebhookFilter) =>
  readStatement(
    (_, wanted: Wanted) => {
      const { from, type, partner, card, endpoint, limit } = wanted;
      const ofStatus = filter.status === null ? sql`` : sql`AND d.status = ${sql.lit(filter.status)}`;
      const ofEndpoint = sql`(${endpoint}::text IS NULL OR endpoint_id = ${endpoint})`;
      let found = sql`FROM delivery d WHERE d.event_id >= ${from} AND ${ofEndpoint}
        AND (${type}::text IS NULL OR d.type = ${type}) ${ofStatus}`;
      if (filter.card !== null) {
        // Through the index of the card's events.
        found = sql`FROM event e JOIN delivery d ON d.event_id = e.id
          WHERE e.card_id = ${card} AND e.id >= ${from}
            AND (${partner}::text IS NULL OR e.partner_id = ${partner})
            AND ${ofEndpoint} AND (${type}::text IS NULL OR e.type = ${type}) ${ofStatus}`;
      } else if (filter.partner !== null) {
        // A page of each mode, status and type through their index, of which it keeps the newest.
        const one = newestRows({
          table: 'delivery',
          columns: ['event_id', 'endpoint_id'],
          where: {
            partner_id: partner,
            mode: sql.ref('wanted_mode.mode'),
            status: sql.ref('wanted_status.status'),
            type: sql.ref('wanted_type.type'),
          },
          id: 'event_id',
          onlyIf: ofEndpoint,
          from,
          limit,
          maxRows: filter.limit,
        });
        found = sql`FROM unnest(${Mode.options}::text[]) wanted_mode (mode)
          CROSS JOIN unnest(${filter.status === null ? DeliveryStatus.options : [filter.status]}::text[]) wanted_status (status)
          CROSS JOIN unnest(${filter.type === null ? EventType.options : [filter.type]}::text[]) wanted_type (type)
          CROSS JOIN LATERAL (${one}) d`;
      }
      // LIMIT 1 keeps the planner from joining whole tables.
      return sql<WebhookRow>`SELECT ${SHOWN}
        FROM (SELECT d.event_id, d.endpoint_id ${found} ORDER BY d.event_id DESC, d.endpoint_id
          LIMIT ${limit}) found
          CROSS JOIN LATERAL (SELECT event_id, endpoint_id, status, attempt_count, next_attempt_at
            FROM delivery WHERE event_id = found.event_id AND endpoint_id = found.endpoint_id LIMIT 1) d
          CROSS JOIN LATERAL (SELECT id, partner_id, mode, type, created_at FROM event
            WHERE id = found.event_id LIMIT 1) e
        ORDER BY d.event_id DESC, d.endpoint_id`;
    },
    { acrossTenants: 'operator' },
  );

interface WebhookRow extends Row<'event', 'id' | 'partner_id' | 'mode'> {
  /** Null if no endpoint wanted it. */
  endpoint_id: string | null;
  status: DeliveryStatus;
  attempt_count: number;
  next_attempt_at: string | null;
  created: string;
}

/** The columns of a WebhookRow, from tables `event` e and `delivery` d. The error is the last attempt's. */
const SHOWN = sql`e.id, nullif(d.endpoint_id, '') AS endpoint_id, 'event' AS object, e.partner_id,
  (SELECT name FROM partner WHERE id = e.partner_id) AS partner_name, e.mode, e.type, d.status,
    d.attempt_count, d.next_attempt_at,
  (SELECT a.error FROM delivery_attempt a
   WHERE a.event_id = d.event_id AND a.endpoint_id = d.endpoint_id
     AND a.number = d.attempt_count) AS last_error,
  e.created_at AS created`;

const present = (row: WebhookRow) => ({
  ...row,
  next_attempt_at: isoTime(row.next_attempt_at),
  created: isoTime(row.created),
});

/**
 * An event with the newest attempts to send it to an endpoint, that endpoint as it is now, and the deliveries to
 * all of them.
 * @param ring null if the keys are not known: receivers' answers are then left out
 * @param wanted.endpointId null for the oldest endpoint that the event is for
 * @throws Refusal if there is no such event, or it is not for the endpoint
 */
export async function readWebhook(
  orm: Orm,
  ring: KeyRing | null,
  { eventId, endpointId }: { eventId: string; endpointId: string | null },
) {
  const em = orm.em.fork();
  const rows = await selectDeliveries(em, { eventId });
  if (rows.length === 0)
    throw unknownId('evt', eventId, 'run "operator webhook list"; events are kept for 30 days');
  const row = rows.find(({ endpoint_id }) => endpointId === null || endpoint_id === endpointId);
  if (row === undefined)
    throw new Refusal(`${eventId} has no delivery to ${endpointId}: run "operator webhook show ${eventId}".`);
  const { url, endpoint_status: status, ...webhook } = row;
  const attempts = await selectAttempts(em, { eventId, endpointId: row.endpoint_id ?? '' });
  return {
    ...present(webhook),
    attempts: attempts.reverse().map((attempt) => ({
      ...presentAttempt(attempt),
      answer_start: ring && attempt.answer_start && openAnswerStart(ring, eventId, attempt.answer_start),
    })),
    endpoint: url === null ? null : { url, status },
    deliveries: rows
      .filter(({ endpoint_id }) => endpoint_id !== null)
      .map(({ endpoint_id, status, attempt_count }) => ({ endpoint_id, status, attempt_count })),
    workflow_id: deliverWebhookWorkflowId(eventId, row.endpoint_id ?? ''),
  };
}

export type WebhookDetail = Awaited<ReturnType<typeof readWebhook>>;

const selectDeliveries = readStatement(
  (_, { eventId }: { eventId: string }) => sql<
    WebhookRow & { url: string | null; endpoint_status: Row<'webhook_endpoint', 'status'>['status'] }
  >`
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
    .orderBy('number', 'desc')
    .limit(sql.lit(MAX_ATTEMPTS_SHOWN)),
);

/** The columns of a WebhookEndpointRow. */
export const shownEndpointColumns = ({ eb, ref }: ExpressionBuilder<Tables, 'webhook_endpoint'>) =>
  [
    ...ENDPOINT_COLUMNS,
    eb
      .case()
      .when('previous_secret_expires_at', '>', sql<string>`account_now(${ref('partner_id')}, ${ref('mode')})`)
      .then(eb.ref('previous_secret_expires_at'))
      .end()
      .as('previous_secret_expires_at'),
  ] as const;

/** An account's endpoints in these modes, test before live, the oldest first, without their secrets. */
export const readEndpoints = readStatement(
  (db, { partnerId, modes }: { partnerId: string; modes: readonly Mode[] }) =>
    db
      .selectFrom('webhook_endpoint')
      .select(shownEndpointColumns)
      .where('partner_id', '=', partnerId)
      .where('mode', '=', anyOf(modes))
      .orderBy('mode', 'desc')
      .orderBy('id'),
);

/** An endpoint of an account; null for its oldest one, which `/webhook-endpoint` acts on. */
export type EndpointId = string | null;

/**
 * @param endpointId null for the oldest one
 * @throws ApiError `webhook_endpoint_not_found`
 */
export async function readEndpoint(
  em: Reader,
  { partnerId, mode }: Tenant,
  endpointId: EndpointId,
): Promise<WebhookEndpointRow> {
  const endpoints = await readEndpoints(em, { partnerId, modes: [mode] });
  const found = endpoints.find(({ id }) => endpointId === null || id === endpointId);
  if (found !== undefined) return found;
  throw endpointNotFound(endpointId);
}

export const endpointNotFound = (endpointId: EndpointId): ApiError =>
  endpointId === null
    ? new ApiError('webhook_endpoint_not_found')
    : new ApiError('webhook_endpoint_not_found', {
        message: "This account has no webhook endpoint with this id in this key's mode.",
      });

export const endpointDisabled = (): ApiError =>
  new ApiError('invalid_state', {
    message:
      'The webhook endpoint is disabled. Enable it with PATCH /webhook-endpoints/{id}, or PUT /webhook-endpoint for the oldest.',
  });

/** Of each mode, the oldest endpoint, or the one with this id. */
export function pickEndpoints(
  endpoints: readonly WebhookEndpointRow[],
  endpointId: EndpointId,
): WebhookEndpointRow[] {
  return endpoints.filter(
    (endpoint, index) =>
      (endpointId === null && endpoints.findIndex(({ mode }) => mode === endpoint.mode) === index) ||
      endpoint.id === endpointId,
  );
}
