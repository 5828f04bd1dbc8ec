import { z } from 'zod';
import { DeliveryStatus, EventType } from '../domain/event.ts';
import { ObjectType } from '../domain/fields.ts';
import { Mode } from '../domain/mode.ts';
import type { Row } from '../platform/db/entities.ts';
import { EVENT_DATA, EVENT_TYPES, type EventData } from './event-types-resource.ts';
import { WEBHOOK_ENDPOINT } from './examples.ts';

/**
 * Of each delivery: five whole retry schedules. Each resend adds attempts, and a page of events with thousands
 * of them each would keep other accounts waiting while it is made.
 */
export const MAX_ATTEMPTS_SHOWN = 25;
/** Of each event. Those to endpoints that were deleted are kept. */
export const MAX_DELIVERIES_SHOWN = 20;

const DeliveryAttempt = z
  .object({
    number: z.int().min(1).describe('1 for the first attempt.'),
    status: z.enum(['succeeded', 'failed']).describe('`succeeded` if your endpoint answered 2xx.'),
    http_status: z.int().nullable().describe('The HTTP status of your response. Null if there was none.'),
    started_at: z.iso.datetime().describe('When the attempt began.'),
    duration_ms: z.int().min(0).describe('How long it took, in milliseconds.'),
    error: z
      .string()
      .nullable()
      .describe('Why it failed, as a short code such as `http_503` or `timeout`. Null if it succeeded.'),
  })
  .meta({ id: 'DeliveryAttempt', description: 'One attempt to deliver an event.' });

const DELIVERY = {
  status: DeliveryStatus,
  next_attempt_at: z.iso.datetime().nullable().describe('When the next retry is due. Null if there is none.'),
  attempts: z
    .array(DeliveryAttempt)
    .describe(`The newest ${MAX_ATTEMPTS_SHOWN} attempts so far, the oldest of them first.`),
};

const Delivery = z
  .object(DELIVERY)
  .meta({ id: 'EventDelivery', description: 'The delivery of an event to its oldest endpoint so far.' });

const EndpointDelivery = z
  .object({
    endpoint_id: z
      .string()
      .describe('Which endpoint it is sent to. The endpoint may have been deleted since.'),
    ...DELIVERY,
  })
  .meta({ id: 'EndpointDelivery', description: 'The delivery of an event to one endpoint so far.' });

const Deliveries = z
  .array(EndpointDelivery)
  .describe(
    'The delivery to each endpoint that it is for, the oldest endpoint first, up to ' +
      `${MAX_DELIVERIES_SHOWN} of them. Empty if it is for none.`,
  );

interface Sent<Type extends EventType> {
  id: string;
  type: Type;
  created: string;
  mode: Mode;
  data: z.infer<z.ZodObject<EventData[(typeof EVENT_TYPES)[Type]['data']]>>;
}

/** The body we send. */
export type WebhookEvent = { [Type in EventType]: Sent<Type> }[EventType];

/** An event: the body we send, and its deliveries (docs/partners/webhooks.md). */
export type EventResource = WebhookEvent & {
  object: 'event';
  delivery: z.infer<typeof Delivery>;
  deliveries: z.infer<typeof Deliveries>;
};

/** For each name in EVENT_DATA, the schemas of its events: the body we send, and what GET /events shows. */
const SCHEMAS = (Object.keys(EVENT_DATA) as (keyof EventData)[]).map((name) => {
  const types = EventType.options.filter((type) => EVENT_TYPES[type].data === name);
  const listed = new Intl.ListFormat('en', { type: 'disjunction' }).format(
    types.map((type) => `\`${type}\``),
  );
  const id = z.string().describe('Prefix `evt_`. It stays the same when the event is sent again.');
  const envelope = {
    type: z.enum(types).describe('What happened.'),
    created: z.iso.datetime().describe('When it happened.'),
    mode: Mode,
    data: z.object(EVENT_DATA[name]).meta({
      id: `${name}EventData`,
      description: 'The full objects as they were right after the change.',
    }),
  };
  return {
    types,
    sent: z
      .object({ id, ...envelope })
      .meta({ id: `${name}WebhookEvent`, description: `The body we send for ${listed}.` }),
    shown: z
      .object({ id, object: ObjectType('event'), ...envelope, delivery: Delivery, deliveries: Deliveries })
      .meta({ id: `${name}Event`, description: `An event of type ${listed}.` }),
  };
});

/** An event: the body we send, and its deliveries. */
export const EventResource = anySchema<EventResource>(SCHEMAS.map(({ shown }) => shown)).meta({
  id: 'Event',
  description: 'Something that happened, and its deliveries so far.',
});

/** The body we send. */
export const WebhookEvent = anySchema<WebhookEvent>(SCHEMAS.map(({ sent }) => sent)).meta({
  id: 'WebhookEvent',
  description: 'What your webhook endpoint receives.',
});

/** The schema of the body that we send for events of a type. */
export function webhookEventSchema(type: EventType): z.ZodType {
  const found = SCHEMAS.find(({ types }) => types.includes(type));
  if (found === undefined) throw new Error(`no schema for ${type}`);
  return found.sent;
}

/** The table that the schemas are made from says that they are of this type. */
function anySchema<Resource>(schemas: z.core.$ZodTypeDiscriminable[]): z.ZodType<Resource> {
  const union = z.discriminatedUnion('type', schemas as [z.core.$ZodTypeDiscriminable]);
  return union as z.ZodType<unknown> as z.ZodType<Resource>;
}

/** An example of the body that we send for events of a type. All of its data is of one mode. */
export function webhookEventExample(type: EventType): WebhookEvent {
  const { id, data } = EVENT_TYPES[type].example;
  const [{ mode }] = Object.values(data) as [{ mode: Mode }];
  return { id, type, created: '2026-11-22T06:45:51.402Z', mode, data } as WebhookEvent;
}

/**
 * The same event as GET /events shows it: delivered at the first attempt, unless `changes` says otherwise.
 */
export function eventExample(
  type: EventType,
  changes: Partial<EventResource['delivery']> = {},
): EventResource {
  const { id, created, mode, data } = webhookEventExample(type);
  const attempt = {
    number: 1,
    status: 'succeeded',
    http_status: 200,
    started_at: '2026-11-22T06:45:51.441Z',
    duration_ms: 41,
    error: null,
  };
  const delivery = { status: 'delivered', next_attempt_at: null, attempts: [attempt], ...changes };
  return {
    id,
    object: 'event',
    type,
    created,
    mode,
    data,
    delivery,
    deliveries: [{ endpoint_id: WEBHOOK_ENDPOINT.id, ...delivery }],
  } as EventResource;
}

/** An event with its deliveries. */
export interface EventRow extends Row<'event', 'id' | 'body'> {
  /** At least one, that of the oldest endpoint first. */
  deliveries: DeliveryRow[];
}

interface DeliveryRow extends Row<'delivery', 'endpoint_id' | 'status' | 'next_attempt_at'> {
  /** Null if there are none yet. */
  attempts: AttemptRow[] | null;
}

type AttemptRow = Row<
  'delivery_attempt',
  'number' | 'delivered' | 'http_status' | 'started_at' | 'duration_ms' | 'error'
>;

export function presentEvent(row: EventRow): EventResource {
  const { id, type, created, mode, data } = JSON.parse(row.body);
  const deliveries = row.deliveries.map(({ endpoint_id, status, next_attempt_at, attempts }) => ({
    endpoint_id,
    status,
    next_attempt_at: next_attempt_at === null ? null : new Date(next_attempt_at).toISOString(),
    attempts: (attempts ?? []).map(presentAttempt),
  }));
  const [oldest] = deliveries;
  if (oldest === undefined) throw new Error(`event ${id} has no delivery`);
  const { endpoint_id: _, ...delivery } = oldest;
  return {
    id,
    object: 'event',
    type,
    created,
    mode,
    data,
    delivery,
    deliveries: deliveries.filter(({ endpoint_id }) => endpoint_id !== ''),
  };
}

export function presentAttempt(row: AttemptRow): z.infer<typeof DeliveryAttempt> {
  return {
    number: row.number,
    status: row.delivered ? 'succeeded' : 'failed',
    http_status: row.http_status,
    started_at: new Date(row.started_at).toISOString(),
    duration_ms: row.duration_ms,
    error: row.error,
  };
}
