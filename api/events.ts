import { z } from 'zod';
import { requeueEvents } from '../commands/webhooks/send-on-request.ts';
import { lowestId } from '../crypto/new-id.ts';
import { type NewestOf, newestOf } from '../db/newest.ts';
import type { Orm } from '../db/orm.ts';
import { tenantQuery } from '../db/tenant-query.ts';
import { ApiError } from '../domain/api-error.ts';
import { DeliveryStatus, EVENTS_KEPT_DAYS, EventType } from '../domain/event.ts';
import { isId } from '../domain/ids.ts';
import type { Tenant } from '../domain/tenant.ts';
import { EventResource, type EventRow, presentEvent } from '../resources/event.ts';
import { Limit, listOf, presentList, StartingAfter } from './http/list-envelope.ts';
import { declare, resource } from './http/route.ts';
import * as EXAMPLES from './openapi/examples.ts';

const Timestamp = z.iso
  .datetime({
    offset: true,
    error: 'must be an ISO 8601 timestamp with a time zone, such as 2026-11-20T08:00:00.000Z',
  })
  .transform((text) => new Date(text))
  .optional();

const listEvents = declare({
  method: 'get',
  path: '/events',
  operationId: 'events.list',
  summary: 'List events',
  description:
    'The events of the last 30 days, newest first, whether or not you have a webhook endpoint. Catch up here on what you missed.',
  query: z.strictObject({
    limit: Limit,
    starting_after: StartingAfter('evt'),
    type: EventType.optional().describe('Only events of this type.'),
    delivery_status: DeliveryStatus.optional().describe('Only events whose delivery has this status.'),
    created_gte: Timestamp.describe('Only events created at this time or later.'),
    created_lte: Timestamp.describe('Only events created at this time or earlier.'),
  }),
  responses: { 200: listOf(EventResource) },
  examples: { 200: EXAMPLES.listOf(EXAMPLES.EVENT) },
});

const getEvent = declare({
  method: 'get',
  path: '/events/:eventId',
  operationId: 'events.get',
  summary: 'Retrieve an event',
  description: 'The event with every attempt to deliver it.',
  query: z.strictObject({}),
  responses: { 200: EventResource },
  examples: { 200: EXAMPLES.EVENT },
  errors: ['event_not_found'],
});

const resendEvent = declare({
  method: 'post',
  path: '/events/:eventId/resend',
  operationId: 'events.resend',
  summary: 'Resend an event',
  description: 'Sends it now, with the same id and the same body. If that fails, the retries start over.',
  query: z.strictObject({}),
  responses: { 202: EventResource },
  examples: { 202: EXAMPLES.RESENT_EVENT },
  errors: ['event_not_found', 'webhook_endpoint_not_found', 'invalid_state'],
});

export const events = resource(
  { listEvents, getEvent, resendEvent },
  ({ orm, eventsWritten }: { orm: Orm; eventsWritten(): void }) => ({
    async listEvents({ caller, query }) {
      const events = await readEventPage(orm, caller, {
        limit: query.limit,
        startingAfter: query.starting_after,
        type: query.type,
        status: query.delivery_status,
        from: query.created_gte,
        until: query.created_lte,
      });
      return { status: 200, body: presentList(events, query.limit) };
    },

    getEvent: async ({ caller, params }) => ({
      status: 200,
      body: await readEvent(orm, caller, params.eventId ?? ''),
    }),

    async resendEvent({ caller, params: { eventId = '' } }) {
      if (!isId('evt', eventId)) throw new ApiError('event_not_found');
      await requeueEvents(orm, [eventId], { by: 'partner', tenant: caller });
      eventsWritten();
      return { status: 202, body: await readEvent(orm, caller, eventId) };
    },
  }),
);

const KEPT_MS = EVENTS_KEPT_DAYS * 24 * 3_600_000;

/** @throws ApiError `event_not_found`, for an id of another shape as well. */
export async function readEvent(orm: Orm, tenant: Tenant, eventId: string): Promise<EventResource> {
  const [row] = isId('evt', eventId)
    ? await tenantQuery<EventRow>(orm.em.fork(), tenant, ONE, [eventId, new Date(Date.now() - KEPT_MS)])
    : [];
  if (row === undefined) throw new ApiError('event_not_found');
  return presentEvent(row);
}

export interface EventPage {
  limit: number;
  startingAfter?: string | undefined;
  type?: string | undefined;
  status?: DeliveryStatus | undefined;
  from?: Date | undefined;
  until?: Date | undefined;
}

/**
 * Up to `limit` + 1 events of the last 30 days, newest first, by key.
 * @throws ApiError `validation_failed` where `startingAfter` is no event of the tenant.
 */
export async function readEventPage(orm: Orm, tenant: Tenant, page: EventPage): Promise<EventResource[]> {
  const keptFromMs = Date.now() - KEPT_MS;
  const from = new Date(Math.max(page.from?.getTime() ?? keptFromMs, keptFromMs));
  const values: unknown[] = [page.limit + 1, lowestId('evt', from)];
  const bind = (value: unknown) => `$${values.push(value) + 2}`;
  const after = page.startingAfter === undefined ? undefined : bind(page.startingAfter);
  // An event is created at the time of its id, so its id alone says whether it is in the range.
  const untilId = page.until && lowestId('evt', new Date(page.until.getTime() + 1));
  const [end] = [page.startingAfter, untilId].filter((id) => id !== undefined).sort();
  const range = { from: '$4', before: end && bind(end), limit: '$3' };
  const rows = await tenantQuery<EventRow & { known: boolean }>(
    orm.em.fork(),
    tenant,
    `SELECT k.known, page.id, page.body, page.status, page.next_attempt_at, made.attempts
     FROM (SELECT ${after === undefined ? 'true' : KNOWN(after)} AS known) k
     LEFT JOIN (${
       page.status === undefined && page.type === undefined ? unfiltered(range) : filtered(page, range, bind)
     }) page ON page.partner_id = $1 AND page.mode = $2
     ${ATTEMPTS}
     ORDER BY page.id DESC`,
    values,
  );
  if (rows[0]?.known === false)
    throw ApiError.ofField('starting_after', 'starting_after is not the id of an event');
  return rows.filter((row) => row.id !== null).map(presentEvent);
}

type Range = Pick<NewestOf, 'from' | 'before' | 'limit'>;

// LIMIT 1 keeps the planner from joining whole tables where a page of rows is wanted, however wrong its estimates are.

const unfiltered = (range: Range): string => `
  SELECT e.*, d.status, d.next_attempt_at
  FROM (${newestOf({
    table: 'event',
    columns: 'partner_id, mode, id, body',
    where: { partner_id: '$1', mode: '$2' },
    id: 'id',
    ...range,
  })}) e
    CROSS JOIN LATERAL (SELECT status, next_attempt_at FROM delivery WHERE event_id = e.id LIMIT 1) d`;

/** A page of each status and type that is asked for, by the index of both, and the newest of them all. */
const filtered = ({ status, type }: EventPage, range: Range, bind: (value: unknown) => string): string => `
  SELECT d.partner_id, d.mode, d.event_id AS id, e.body, d.status, d.next_attempt_at FROM (
    SELECT one.*
    FROM unnest(${bind(status === undefined ? DeliveryStatus.options : [status])}::text[]) wanted_status (status)
      CROSS JOIN unnest(${bind(type === undefined ? EventType.options : [type])}::text[]) wanted_type (type)
      CROSS JOIN LATERAL (${newestOf({
        table: 'delivery',
        columns: 'partner_id, mode, event_id, status, next_attempt_at',
        where: { partner_id: '$1', mode: '$2', status: 'wanted_status.status', type: 'wanted_type.type' },
        id: 'event_id',
        ...range,
      })}) one
    ORDER BY one.event_id DESC LIMIT $3
  ) d CROSS JOIN LATERAL (SELECT body FROM event WHERE id = d.event_id LIMIT 1) e`;

const ATTEMPTS = `LEFT JOIN LATERAL (
       SELECT json_agg(json_build_object('number', a.number, 'delivered', a.delivered, 'http_status', a.http_status,
         'started_at', a.started_at, 'duration_ms', a.duration_ms, 'error', a.error) ORDER BY a.number) AS attempts
       FROM delivery_attempt a WHERE a.event_id = page.id
     ) made ON true`;

const ONE = `
  SELECT page.id, page.body, page.status, page.next_attempt_at, made.attempts FROM (
    SELECT e.id, e.body, d.status, d.next_attempt_at FROM event e JOIN delivery d ON d.event_id = e.id
    WHERE e.partner_id = $1 AND e.mode = $2 AND e.id = $3 AND e.created_at >= $4
  ) page ${ATTEMPTS}`;

const KNOWN = (after: string) =>
  `EXISTS (SELECT FROM event WHERE partner_id = $1 AND mode = $2 AND id = ${after})`;
