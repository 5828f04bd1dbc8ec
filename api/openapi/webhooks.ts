import { EventType } from '../../domain/event.ts';
import { idPattern } from '../../domain/ids.ts';
import { EVENT_TYPES } from '../../webhooks/event-types-resource.ts';
import { webhookEventExample, webhookEventSchema } from '../../webhooks/resource.ts';
import { json } from './responses.ts';
import type { Schemas } from './schemas.ts';

export const WEBHOOKS_TAG = { name: 'Webhooks', description: 'The events we send to your webhook endpoint.' };

/** The events we send to partners, as operations of their webhook endpoint. */
export function describeWebhooks(schemas: Schemas): Record<string, object> {
  return Object.fromEntries(
    EventType.options.map((type) => [
      type,
      { post: describeOperation(type, schemas.of(webhookEventSchema(type), 'output')) },
    ]),
  );
}

function describeOperation(type: EventType, schema: object): object {
  return {
    tags: [WEBHOOKS_TAG.name],
    operationId: `webhooks.${type.replace(/[._](\w)/g, (_, letter: string) => letter.toUpperCase())}`,
    summary: type,
    description:
      `${EVENT_TYPES[type].summary}.\n\n` +
      'Verify the signature before you trust the body, and handle each `id` once: an event can arrive twice, and ' +
      'order is not guaranteed.',
    security: [],
    parameters: SIGNATURE_HEADERS,
    requestBody: {
      required: true,
      content: json(schema, { example: webhookEventExample(type) }),
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
