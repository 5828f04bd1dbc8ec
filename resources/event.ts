import { z } from 'zod';
import type { Row } from '../db/tables.ts';
import { DeliveryStatus, type EventType } from '../domain/event.ts';
import { ObjectType } from '../domain/fields.ts';
import { Mode } from '../domain/mode.ts';
import { CardResource } from './card.ts';
import { DepositResource } from './deposit.ts';
import { TopUpResource } from './topup.ts';
import { TransactionResource } from './transaction.ts';
import { WebhookEndpointResource } from './webhook-endpoint.ts';

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

const Delivery = z
  .object({
    status: DeliveryStatus,
    next_attempt_at: z.iso
      .datetime()
      .nullable()
      .describe('When the next retry is due. Null if there is none.'),
    attempts: z.array(DeliveryAttempt).describe('Every attempt so far, oldest first.'),
  })
  .meta({ id: 'EventDelivery', description: 'The delivery of an event so far.' });

const card = CardResource.describe('The card right after the change.');
const topup = TopUpResource.describe('The top-up right after the change.');
const deposit = DepositResource.describe('The deposit right after the change.');
const webhook_endpoint = WebhookEndpointResource.describe('The endpoint the ping is sent to.');

const CARD = eventOf(
  'Card',
  ['card.issued', 'card.issue_failed', 'card.frozen', 'card.unfrozen', 'card.blocked'],
  { card },
);
const TOPUP = eventOf('Topup', ['topup.succeeded', 'topup.failed'], { topup, card });
const TRANSACTION = eventOf('Transaction', ['card.transaction.created'], {
  transaction: TransactionResource,
  card: CardResource.describe('The card right after the transaction.'),
});
const DEPOSIT = eventOf('Deposit', ['deposit.confirmed'], { deposit });
const PING = eventOf('Ping', ['ping'], { webhook_endpoint });

/** Events with the same data: the webhook we send, and the resource that GET /events shows, which has the delivery too. */
function eventOf<const Types extends readonly EventType[], Data extends z.ZodRawShape>(
  name: string,
  types: Types,
  data: Data,
) {
  const id = z.string().describe('Prefix `evt_`. It stays the same when the event is sent again.');
  const envelope = {
    type: z.enum(types).describe('What happened.'),
    created: z.iso.datetime().describe('When it happened.'),
    mode: Mode,
    data: z.object(data).meta({
      id: `${name}EventData`,
      description: 'The full objects as they were right after the change.',
    }),
  };
  return {
    sent: z
      .object({ id, ...envelope })
      .meta({ id: `${name}WebhookEvent`, description: `The body we send for ${listed(types)}.` }),
    shown: z
      .object({ id, object: ObjectType('event'), ...envelope, delivery: Delivery })
      .meta({ id: `${name}Event`, description: `An event of type ${listed(types)}.` }),
  };
}

function listed(types: readonly string[]): string {
  return new Intl.ListFormat('en', { type: 'disjunction' }).format(types.map((type) => `\`${type}\``));
}

/** An event: the body we send, and its delivery (docs/partners/webhooks.md). */
export const EventResource = z
  .discriminatedUnion('type', [CARD.shown, TOPUP.shown, TRANSACTION.shown, DEPOSIT.shown, PING.shown])
  .meta({ id: 'Event', description: 'Something that happened, and its delivery so far.' });
export type EventResource = z.infer<typeof EventResource>;

/** The body we send. */
export const WebhookEvent = z
  .discriminatedUnion('type', [CARD.sent, TOPUP.sent, TRANSACTION.sent, DEPOSIT.sent, PING.sent])
  .meta({ id: 'WebhookEvent', description: 'What your webhook endpoint receives.' });
export type WebhookEvent = z.infer<typeof WebhookEvent>;

/** An event with its delivery. */
export interface EventRow extends Row<'event', 'id' | 'body'>, Row<'delivery', 'status' | 'next_attempt_at'> {
  /** Null if there are none yet. */
  attempts: AttemptRow[] | null;
}

type AttemptRow = Row<
  'delivery_attempt',
  'number' | 'delivered' | 'http_status' | 'started_at' | 'duration_ms' | 'error'
>;

export function presentEvent({ body, status, next_attempt_at, attempts }: EventRow): EventResource {
  const { id, type, created, mode, data } = JSON.parse(body);
  const nextAttemptAt = next_attempt_at === null ? null : new Date(next_attempt_at).toISOString();
  return {
    id,
    object: 'event',
    type,
    created,
    mode,
    data,
    delivery: { status, next_attempt_at: nextAttemptAt, attempts: (attempts ?? []).map(presentAttempt) },
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
