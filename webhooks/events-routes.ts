import { type RawBuilder, sql } from 'kysely';
import { z } from 'zod';
import {
  accountKey,
  CardFilter,
  declareList,
  idRange,
  type PageValues,
  pageOf,
  pageRows,
  pageValues,
} from '../api/http/list.ts';
import { type PageRequest, readLongPage } from '../api/http/list-envelope.ts';
import { declare, resource } from '../api/http/route.ts';
import { ApiError } from '../domain/api-error.ts';
import { DeliveryStatus, EVENTS_KEPT_DAYS, EventType } from '../domain/event.ts';
import { isId } from '../domain/ids.ts';
import type { Tenant } from '../domain/mode.ts';
import { lowestId } from '../platform/crypto/new-id.ts';
import type { Row } from '../platform/db/entities.ts';
import { newestRows, unseen } from '../platform/db/newest.ts';
import type { Orm } from '../platform/db/orm.ts';
import type { ReadList } from '../platform/db/read-replica.ts';
import { tenantStatement } from '../platform/db/sql.ts';
import { WEBHOOK_ENDPOINT } from './examples.ts';
import {
  EventResource,
  type EventRow,
  eventExample,
  MAX_ATTEMPTS_SHOWN,
  MAX_DELIVERIES_SHOWN,
  presentEvent,
} from './resource.ts';
import { resendEvent as sendAgain } from './send-on-request.ts';

const listEvents = declareList({
  path: '/events',
  scope: 'events:read',
  operationId: 'events.list',
  summary: 'List events',
  description:
    'The events of the last 30 days, newest first, whether or not you have a webhook endpoint. Use it to catch up on events you missed.',
  idPrefix: 'evt',
  item: EventResource,
  example: eventExample('card.issued'),
  filters: {
    type: EventType.optional().describe('Only events of this type.'),
    card_id: CardFilter.describe(
      'Only events about this card, its top-ups, withdrawals, transactions and authorizations included.',
    ),
    delivery_status: DeliveryStatus.optional().describe(
      'Only events of which a delivery has this status, to whichever endpoint.',
    ),
  },
});

const getEvent = declare({
  method: 'get',
  path: '/events/:eventId',
  scope: 'events:read',
  operationId: 'events.get',
  summary: 'Retrieve an event',
  description: 'The event with the attempts to deliver it, to each endpoint.',
  responses: { 200: EventResource },
  examples: { 200: eventExample('card.issued') },
  errors: ['event_not_found'],
});

const ResendRequest = z
  .strictObject({
    endpoint_id: z
      .string({ error: 'must be a string' })
      .optional()
      .describe(
        'The endpoint to send it to, prefix `we_`, whatever types it is for. If you leave it out, we send the event to each ' +
          'endpoint that it had a delivery for, or, if there is none, to those that want it now.',
      ),
  })
  .meta({ id: 'ResendEventRequest', description: 'Where to send the event again.' });

const resendEvent = declare({
  method: 'post',
  path: '/events/:eventId/resend',
  scope: 'webhooks:write',
  operationId: 'events.resend',
  summary: 'Resend an event',
  description:
    'Sends the event now, with the same id and body. If that attempt fails, the retry schedule starts over. The body is ' +
    'optional.',
  body: ResendRequest,
  bodyIsOptional: true,
  responses: { 202: EventResource },
  examples: {
    body: { endpoint_id: WEBHOOK_ENDPOINT.id },
    202: eventExample('card.issued', { status: 'pending' }),
  },
  errors: ['event_not_found', 'webhook_endpoint_not_found', 'invalid_state'],
});

export const events = resource(
  { listEvents, getEvent, resendEvent },
  ({ orm, readList, eventsWritten }: { orm: Orm; readList: ReadList; eventsWritten(): void }) => ({
    async listEvents({ caller, query }) {
      const read = (from: Orm) => readLongPage(query, (part) => readEventPage(from, caller, part));
      return { status: 200, body: await readList(read) };
    },

    getEvent: async ({ caller, params }) => ({
      status: 200,
      body: await readEvent(orm, caller, params.eventId ?? ''),
    }),

    async resendEvent({ caller, params: { eventId = '' }, body }) {
      if (!isId('evt', eventId)) throw new ApiError('event_not_found');
      await sendAgain(orm, caller, { eventId, endpointId: body.endpoint_id ?? null });
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
  card_id?: string | undefined;
  delivery_status?: DeliveryStatus | undefined;
}

/**
 * Up to `limit` + 1 events of the last 30 days, newest first, by key.
 * @throws ApiError `validation_failed` if `starting_after` is not an event of the tenant.
 */
export async function readEventPage(orm: Orm, tenant: Tenant, page: EventPage): Promise<EventResource[]> {
  const { type, card_id: cardId, delivery_status: status } = page;
  const ofAll = status === undefined && type === undefined ? selectPage : selectFilteredPage;
  const ofCard = type === undefined ? selectCardPage : selectCardPageOfType;
  const read = cardId === undefined ? ofAll : ofCard;
  const rows = await read(orm.em.fork(), tenant, {
    ...pageValues(page),
    cardId: cardId ?? '',
    keptFrom: lowestId('evt', new Date(Date.now() - KEPT_MS)),
    statuses: status === undefined ? DeliveryStatus.options : [status],
    types: type === undefined ? EventType.options : [type],
    type,
  });
  return pageRows<EventRow>(rows, 'an event').map(presentEvent);
}

/**
 * The deliveries of an event with their attempts, for a lateral join: that of the oldest endpoint first.
 * Resending adds to both without end.
 */
const selectDeliveries = ({ partnerId, mode }: Tenant, eventId: RawBuilder<unknown>) =>
  sql<Pick<EventRow, 'deliveries'>>`(
    select json_agg(json_build_object('endpoint_id', d.endpoint_id, 'status', d.status,
      'next_attempt_at', d.next_attempt_at, 'attempts', (
        select json_agg(json_build_object('number', a.number, 'delivered', a.delivered, 'http_status', a.http_status,
          'started_at', a.started_at, 'duration_ms', a.duration_ms, 'error', a.error) order by a.number)
        from (select * from delivery_attempt where event_id = d.event_id and endpoint_id = d.endpoint_id
          order by number desc limit ${sql.lit(MAX_ATTEMPTS_SHOWN)}) a
      )) order by d.endpoint_id) as deliveries
    from (select * from delivery where event_id = ${eventId} and partner_id = ${partnerId} and mode = ${mode}
      order by endpoint_id limit ${sql.lit(MAX_DELIVERIES_SHOWN)}) d
    having count(*) > 0)`.as('sent');

const one = tenantStatement(
  (db, { partnerId, mode, eventId, from }: Tenant & { eventId: string; from: string }) =>
    db
      .selectFrom('event as e')
      .innerJoinLateral(selectDeliveries({ partnerId, mode }, sql.ref('e.id')), (join) => join.onTrue())
      .select(['e.id', 'e.body', 'sent.deliveries'])
      .where('e.partner_id', '=', partnerId)
      .where('e.mode', '=', mode)
      .where('e.id', '=', unseen<string>(eventId))
      .where('e.id', '>=', from),
);

type EventPageValues = Tenant &
  PageValues & {
    cardId: string;
    keptFrom: string;
    statuses: readonly DeliveryStatus[];
    types: readonly EventType[];
    type: EventType | undefined;
  };

type PageRow = Row<'event', 'partner_id' | 'mode' | 'id' | 'body'>;

/** Events are kept for 30 days of real time, which their ids have. */
const keptRange = (values: EventPageValues) => {
  const { from, before } = idRange('evt', values);
  return { from: sql<string>`(select greatest(${from}, ${values.keptFrom}::text collate "C"))`, before };
};

const pageStatement = (newest: (values: EventPageValues) => RawBuilder<PageRow>) =>
  tenantStatement((db, values: EventPageValues) =>
    pageOf(db, values, 'event', newest(values))
      .leftJoinLateral(selectDeliveries(values, sql.ref('page.id')), (join) => join.onTrue())
      .select('sent.deliveries'),
  );

const newestEvents = (
  values: EventPageValues,
  where: Partial<Record<keyof PageRow | 'card_id' | 'type', unknown>>,
  onlyIf?: RawBuilder<unknown>,
) =>
  newestRows({
    table: 'event',
    columns: ['partner_id', 'mode', 'id', 'body'],
    id: 'id',
    ...keptRange(values),
    limit: values.limit,
    where,
    onlyIf,
  });

// LIMIT 1 keeps the planner from joining whole tables to read a page of rows, however wrong its estimates
// are.

const selectPage = pageStatement(
  (
    values,
  ) => sql`(select e.* from ${newestEvents(values, accountKey(values))} e where exists (select from delivery
      where event_id = e.id and partner_id = ${values.partnerId} and mode = ${values.mode}))`,
);

// Leaves out what another account has, or what has no such delivery. The planner doesn't see the values, or it
// would prefer another index for what is rare.
const isOfCard = ({ partnerId, mode, statuses }: EventPageValues) =>
  sql`partner_id = ${unseen(partnerId)} and mode = ${unseen(mode)}
    and (select true from delivery d where d.event_id = event.id
      and d.partner_id = ${partnerId} and d.mode = ${mode}
      and d.status = any(${statuses}::text[]) limit 1)`;

const selectCardPage = pageStatement((values) =>
  newestEvents(values, { card_id: values.cardId }, isOfCard(values)),
);

const selectCardPageOfType = pageStatement((values) =>
  newestEvents(values, { card_id: values.cardId, type: values.type }, isOfCard(values)),
);

// Steps from event to event in the index on status and type, at most a page of each that is requested, and
// keeps the newest. An event has a row for each endpoint it was ever for, deleted ones included, so no number
// of rows is enough for a page.
const selectFilteredPage = pageStatement((values) => {
  const { partnerId, mode, limit, statuses, types } = values;
  const { from, before } = keptRange(values);
  const newestBelow = (id: RawBuilder<unknown>) =>
    newestRows({
      table: 'delivery',
      columns: ['event_id'],
      where: {
        partner_id: partnerId,
        mode,
        status: sql.ref('wanted_status.status'),
        type: sql.ref('wanted_type.type'),
      },
      id: 'event_id',
      from,
      before: id,
      limit: sql.lit(1),
      maxRows: 1,
    });
  return sql`(select ${partnerId}::text as partner_id, ${mode}::text as mode, d.event_id as id, e.body from (
      select distinct one.event_id from unnest(${statuses}::text[]) wanted_status (status)
        cross join unnest(${types}::text[]) wanted_type (type)
        cross join lateral (
          with recursive step (event_id, nth) as (
            select first.event_id, 1 from ${newestBelow(before)} first
            union all
            select next.event_id, step.nth + 1 from step cross
              join lateral ${newestBelow(sql.ref('step.event_id'))} next
            where step.nth < ${limit}::int
          ) select event_id from step
        ) one
      order by one.event_id desc limit ${limit}
    ) d cross join lateral (select body from event
      where id = d.event_id and partner_id = ${partnerId} and mode = ${mode} limit 1) e)`;
});
