import { type RawBuilder, sql } from 'kysely';
import { z } from 'zod';
import { requeueEvents } from '../commands/webhooks/send-on-request.ts';
import { lowestId } from '../crypto/new-id.ts';
import { newestRows, unseen } from '../db/newest.ts';
import type { Orm } from '../db/orm.ts';
import type { ReadList } from '../db/read-replica.ts';
import { tenantStatement } from '../db/sql.ts';
import type { Row } from '../db/tables.ts';
import { ApiError } from '../domain/api-error.ts';
import { DeliveryStatus, EVENTS_KEPT_DAYS } from '../domain/event.ts';
import { isId } from '../domain/ids.ts';
import type { Tenant } from '../domain/mode.ts';
import { EventResource, type EventRow, eventExample, presentEvent } from '../resources/event.ts';
import { EventType } from '../resources/event-types.ts';
import * as EXAMPLES from '../resources/examples.ts';
import {
  CREATED_FILTERS,
  idRange,
  Limit,
  listEnvelope,
  type PageRequest,
  type PageValues,
  pageRows,
  pageValues,
  presentList,
  requestedPage,
  requireStartingAfter,
  StartingAfter,
} from './http/list-envelope.ts';
import { declare, resource } from './http/route.ts';

const listEvents = declare({
  method: 'get',
  path: '/events',
  scope: 'events:read',
  operationId: 'events.list',
  summary: 'List events',
  description:
    'The events of the last 30 days, newest first, whether or not you have a webhook endpoint. Use it to catch up on events you missed.',
  query: z.strictObject({
    limit: Limit,
    starting_after: StartingAfter('evt'),
    type: EventType.optional().describe('Only events of this type.'),
    delivery_status: DeliveryStatus.optional().describe('Only events whose delivery has this status.'),
    ...CREATED_FILTERS,
  }),
  responses: { 200: listEnvelope(EventResource) },
  examples: { 200: EXAMPLES.exampleList(eventExample('card.issued')) },
});

const getEvent = declare({
  method: 'get',
  path: '/events/:eventId',
  scope: 'events:read',
  operationId: 'events.get',
  summary: 'Retrieve an event',
  description: 'The event with every attempt to deliver it.',
  query: z.strictObject({}),
  responses: { 200: EventResource },
  examples: { 200: eventExample('card.issued') },
  errors: ['event_not_found'],
});

const resendEvent = declare({
  method: 'post',
  path: '/events/:eventId/resend',
  scope: 'webhooks:write',
  operationId: 'events.resend',
  summary: 'Resend an event',
  description:
    'Sends the event now, with the same id and body. If that attempt fails, the retry schedule starts over.',
  query: z.strictObject({}),
  responses: { 202: EventResource },
  examples: { 202: eventExample('card.issued', { status: 'pending' }) },
  errors: ['event_not_found', 'webhook_endpoint_not_found', 'invalid_state'],
});

export const events = resource(
  { listEvents, getEvent, resendEvent },
  ({ orm, readList, eventsWritten }: { orm: Orm; readList: ReadList; eventsWritten(): void }) => ({
    async listEvents({ caller, query }) {
      const page = { ...requestedPage(query), type: query.type, status: query.delivery_status };
      const events = await readList((from) => readEventPage(from, caller, page));
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
    ? await one(orm.em.fork(), tenant, { eventId, from: lowestId('evt', new Date(Date.now() - KEPT_MS)) })
    : [];
  if (row === undefined) throw new ApiError('event_not_found');
  return presentEvent(row);
}

interface EventPage extends PageRequest {
  type?: EventType | undefined;
  status?: DeliveryStatus | undefined;
}

/**
 * Up to `limit` + 1 events of the last 30 days, newest first, by key.
 * @throws ApiError `validation_failed` if `startingAfter` is not an event of the tenant.
 */
export async function readEventPage(orm: Orm, tenant: Tenant, page: EventPage): Promise<EventResource[]> {
  const { type, status } = page;
  const read = status === undefined && type === undefined ? selectPage : selectFilteredPage;
  const rows = await read(orm.em.fork(), tenant, {
    ...pageValues(page),
    keptFrom: lowestId('evt', new Date(Date.now() - KEPT_MS)),
    statuses: status === undefined ? DeliveryStatus.options : [status],
    types: type === undefined ? EventType.options : [type],
  });
  return pageRows<EventRow>(rows, 'an event').map(presentEvent);
}

const selectAttempts = (eventId: RawBuilder<unknown>) =>
  sql<Pick<EventRow, 'attempts'>>`(
    select json_agg(json_build_object('number', a.number, 'delivered', a.delivered, 'http_status', a.http_status,
      'started_at', a.started_at, 'duration_ms', a.duration_ms, 'error', a.error) order by a.number) as attempts
    from delivery_attempt a where a.event_id = ${eventId})`.as('made');

const one = tenantStatement(
  (db, { partnerId, mode, eventId, from }: Tenant & { eventId: string; from: string }) =>
    db
      .selectFrom('event as e')
      .innerJoin('delivery as d', (join) =>
        join
          .onRef('d.event_id', '=', 'e.id')
          .onRef('d.partner_id', '=', 'e.partner_id')
          .onRef('d.mode', '=', 'e.mode'),
      )
      .innerJoinLateral(selectAttempts(sql.ref('e.id')), (join) => join.onTrue())
      .select(['e.id', 'e.body', 'd.status', 'd.next_attempt_at', 'made.attempts'])
      .where('e.partner_id', '=', partnerId)
      .where('e.mode', '=', mode)
      .where('e.id', '=', unseen<string>(eventId))
      .where('e.id', '>=', from),
);

type EventPageValues = Tenant &
  PageValues & {
    keptFrom: string;
    statuses: readonly DeliveryStatus[];
    types: readonly EventType[];
  };

type PageRow = Row<'event', 'partner_id' | 'mode' | 'id' | 'body'> &
  Row<'delivery', 'status' | 'next_attempt_at'>;

/** Events are kept for 30 days of real time, which their ids have. */
const keptRange = (values: EventPageValues) => {
  const { from, before } = idRange('evt', values);
  return { from: sql<string>`(select greatest(${from}, ${values.keptFrom}::text collate "C"))`, before };
};

const pageStatement = (newest: (values: EventPageValues) => RawBuilder<PageRow>) =>
  tenantStatement((db, values: EventPageValues) =>
    db
      .selectFrom(requireStartingAfter('event', values).as('k'))
      .leftJoin(newest(values).as('page'), (join) =>
        join.on('page.partner_id', '=', values.partnerId).on('page.mode', '=', values.mode),
      )
      .leftJoinLateral(selectAttempts(sql.ref('page.id')), (join) => join.onTrue())
      .select(['k.known', 'page.id', 'page.body', 'page.status', 'page.next_attempt_at', 'made.attempts'])
      .orderBy('page.id', 'desc'),
  );

// LIMIT 1 keeps the planner from joining whole tables to read a page of rows, however wrong its estimates are.

const selectPage = pageStatement((values) => {
  const { partnerId, mode, limit } = values;
  const newest = newestRows({
    table: 'event',
    columns: ['partner_id', 'mode', 'id', 'body'],
    id: 'id',
    ...keptRange(values),
    limit,
    where: { partner_id: partnerId, mode },
  });
  return sql`(select e.*, d.status, d.next_attempt_at from ${newest} e
    cross join lateral (select status, next_attempt_at from delivery
      where event_id = e.id and partner_id = ${partnerId} and mode = ${mode} limit 1) d)`;
});

// Reads a page of each requested status and type through the index on both, and keeps the newest.
const selectFilteredPage = pageStatement((values) => {
  const { partnerId, mode, limit, statuses, types } = values;
  const ofEach = newestRows({
    table: 'delivery',
    columns: ['partner_id', 'mode', 'event_id', 'status', 'next_attempt_at'],
    where: {
      partner_id: partnerId,
      mode,
      status: sql.ref('wanted_status.status'),
      type: sql.ref('wanted_type.type'),
    },
    id: 'event_id',
    ...keptRange(values),
    limit,
  });
  return sql`(select d.partner_id, d.mode, d.event_id as id, e.body, d.status, d.next_attempt_at from (
      select one.* from unnest(${statuses}::text[]) wanted_status (status)
        cross join unnest(${types}::text[]) wanted_type (type)
        cross join lateral ${ofEach} one
      order by one.event_id desc limit ${limit}
    ) d cross join lateral (select body from event
      where id = d.event_id and partner_id = ${partnerId} and mode = ${mode} limit 1) e)`;
});
