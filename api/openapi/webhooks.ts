import type { EventType } from '../../domain/event.ts';
import { idPattern } from '../../domain/ids.ts';
import { WebhookEvent } from '../../resources/event.ts';
import * as EXAMPLES from './examples.ts';
import { json } from './responses.ts';
import type { Schemas } from './schemas.ts';

export const WEBHOOKS_TAG = { name: 'Webhooks', description: 'The events we send to your webhook endpoint.' };

/** The events we send to partners, as operations of their webhook endpoint. */
export function webhooksOf(schemas: Schemas): Record<string, object> {
  return Object.fromEntries(
    WebhookEvent.options.flatMap((schema) => {
      const content = schemas.of(schema, 'output');
      return schema.shape.type.options.map((type) => [type, { post: operationOf(type, content) }]);
    }),
  );
}

function operationOf(type: EventType, schema: object): object {
  return {
    tags: [WEBHOOKS_TAG.name],
    operationId: `webhooks.${type.replace(/[._](\w)/g, (_, letter: string) => letter.toUpperCase())}`,
    summary: SUMMARIES[type],
    description:
      'Verify the signature before you trust the body, and handle each `id` once: an event can arrive twice, and ' +
      'order is not guaranteed.',
    security: [],
    parameters: SIGNATURE_HEADERS,
    requestBody: {
      required: true,
      content: json(schema, {
        example: SENT.find((event) => event.type === type),
      }),
    },
    responses: {
      '2XX': { description: 'You have received it. Answer within 10 seconds.' },
      410: { description: 'You want no more events. We disable the endpoint until you set it again.' },
      default: {
        description: 'Any other response is a failure. We retry after 30 s, 5 min, 30 min and 2 h.',
      },
    },
  };
}

/** When an event of each type is sent (docs/partners/webhooks.md). */
const SUMMARIES: Record<EventType, string> = {
  'card.issued': 'A card was issued',
  'card.issue_failed': 'A card could not be issued',
  'topup.succeeded': 'A top-up succeeded',
  'topup.failed': 'A top-up failed',
  'card.transaction.created': 'A purchase, a decline or a refund on a card',
  'card.frozen': 'A card was frozen',
  'card.unfrozen': 'A card was unfrozen',
  'card.blocked': 'A card was blocked',
  'deposit.confirmed': 'A deposit was credited',
  ping: 'You asked for a test event',
};

const IF_ASKED_FOR = 'Sent if your endpoint has `standard_webhooks` set.';

const SIGNATURE_HEADERS = [
  header('X-Service-Event-Id', true, "The event's id.", idPattern('evt')),
  header(
    'X-Service-Timestamp',
    true,
    'When this attempt was made, in milliseconds since the epoch.',
    '^[0-9]{1,15}$',
  ),
  header(
    'X-Service-Signature',
    true,
    'The lowercase hex SHA-256 of the timestamp, the raw body and your webhook secret, concatenated.',
    '^[0-9a-f]{64}$',
  ),
  header('webhook-id', false, `The event's id. ${IF_ASKED_FOR}`),
  header(
    'webhook-timestamp',
    false,
    `When this attempt was made, in seconds since the epoch. ${IF_ASKED_FOR}`,
  ),
  header('webhook-signature', false, `One signature for each of your secrets. ${IF_ASKED_FOR}`),
];

function header(name: string, required: boolean, description: string, pattern?: string): object {
  return {
    name,
    in: 'header',
    required,
    description,
    schema: { type: 'string', ...(pattern && { pattern }) },
  };
}

/** An example event of each type. */
const SENT: WebhookEvent[] = [
  sent('evt_01m81020r5wyhhsbhqpb0mty8y', {
    type: 'card.issued',
    mode: 'test',
    data: { card: EXAMPLES.CARD },
  }),
  sent('evt_01m810254x9y4q8bdbzj8m1rtd', {
    type: 'card.issue_failed',
    mode: 'live',
    data: { card: EXAMPLES.FAILED_CARD },
  }),
  sent('evt_01m81020y7g6vd7dq2pvpyg63h', {
    type: 'topup.succeeded',
    mode: 'test',
    data: { topup: EXAMPLES.TOPUP, card: { ...EXAMPLES.CARD, balance: 7_500 } },
  }),
  sent('evt_01m81025g2hn4fgw0cz3v6k9pe', {
    type: 'topup.failed',
    mode: 'live',
    data: { topup: EXAMPLES.FAILED_TOPUP, card: { ...EXAMPLES.CARD, mode: 'live' } },
  }),
  sent('evt_01m8102143jn4tsm29rv5e4ad4', {
    type: 'card.transaction.created',
    mode: 'test',
    data: { transaction: EXAMPLES.TRANSACTION, card: { ...EXAMPLES.CARD, balance: 6_250 } },
  }),
  sent('evt_01m810215682q5zyyj8yqdp2jp', {
    type: 'card.frozen',
    mode: 'test',
    data: { card: EXAMPLES.FROZEN_CARD },
  }),
  sent('evt_01m8102167j610wbcfr9rzt6tq', {
    type: 'card.unfrozen',
    mode: 'test',
    data: { card: EXAMPLES.CARD },
  }),
  sent('evt_01m81021bx6qw00rg95ar4afef', {
    type: 'card.blocked',
    mode: 'test',
    data: { card: EXAMPLES.BLOCKED_CARD },
  }),
  sent('evt_01m81024zan2wj3v6g32rmxq3s', {
    type: 'deposit.confirmed',
    mode: 'live',
    data: { deposit: EXAMPLES.CONFIRMED_DEPOSIT },
  }),
  sent('evt_01m81021nat70kdkb07c1jg1dc', {
    type: 'ping',
    mode: 'test',
    data: { webhook_endpoint: EXAMPLES.WEBHOOK_ENDPOINT },
  }),
];

type Unsent<Event> = Event extends unknown ? Omit<Event, 'id' | 'created'> : never;

function sent(id: string, { type, mode, data }: Unsent<WebhookEvent>): WebhookEvent {
  return { id, type, created: '2026-11-22T06:45:51.402Z', mode, data } as WebhookEvent;
}
