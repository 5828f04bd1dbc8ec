import { z } from 'zod';
import { ObjectType } from '../domain/fields.ts';
import { isoTime } from '../domain/iso-time.ts';
import { Mode } from '../domain/mode.ts';
import type { Row } from '../platform/db/entities.ts';

const LastFailure = z
  .object({
    at: z.iso.datetime().describe('When it ended.'),
    http_status: z.int().nullable().describe('The HTTP status of your response. Null if there was none.'),
    error: z.string().describe('Why it failed, as a short code such as `http_503` or `timeout`.'),
  })
  .meta({ id: 'WebhookEndpointFailure', description: 'The last attempt that failed.' });

/** A place where an account's events go, as partners see it (docs/partners/webhooks.md). */
export const WebhookEndpointResource = z
  .object({
    id: z.string().describe('Prefix `we_`.'),
    object: ObjectType('webhook_endpoint'),
    url: z.string().describe('Where events are sent.'),
    mode: Mode,
    event_types: z
      .array(z.string())
      .nullable()
      .describe('The types of events it is sent. Null for all types, future ones included.'),
    description: z.string().nullable().describe('Your own words about it.'),
    status: z
      .enum(['enabled', 'disabled'])
      .describe('We send nothing to a `disabled` endpoint. Its events are parked until you enable it.'),
    disabled_reason: z
      .string()
      .nullable()
      .describe('Why the endpoint is disabled. Null while it is enabled.'),
    standard_webhooks: z.boolean().describe('Whether the Standard Webhooks headers are sent as well.'),
    secret: z
      .string()
      .optional()
      .describe(
        'The signing secret, prefix `whsec_`. Present only in the response that created or rotated it.',
      ),
    previous_secret_expires_at: z.iso
      .datetime()
      .nullable()
      .describe('Until when we also sign with the previous secret. Null if there is none.'),
    consecutive_failures: z
      .int()
      .min(0)
      .describe('How many attempts have failed since the last one that succeeded.'),
    failing_since: z.iso
      .datetime()
      .nullable()
      .describe('When the first of these attempts failed. Null if the last attempt succeeded.'),
    last_success_at: z.iso
      .datetime()
      .nullable()
      .describe('When you last answered 2xx, give or take a second. Null if you never did.'),
    last_failure: LastFailure.nullable().describe('Null if no attempt has failed.'),
    created: z.iso.datetime().describe('When the endpoint was created.'),
  })
  .meta({ id: 'WebhookEndpoint', description: 'A place where events of one mode are sent.' });
export type WebhookEndpointResource = z.infer<typeof WebhookEndpointResource>;

/** The columns of an endpoint's row that may be shown as they are. */
export const ENDPOINT_COLUMNS = [
  'id',
  'partner_id',
  'mode',
  'url',
  'status',
  'disabled_reason',
  'standard_headers',
  'event_types',
  'description',
  'consecutive_failures',
  'failing_since',
  'last_success_at',
  'last_failure_at',
  'last_failure_http_status',
  'last_failure_error',
  'created_at',
] as const;

/** What of an endpoint's row may be shown. `previous_secret_expires_at` is null once it has passed. */
export type WebhookEndpointRow = Row<
  'webhook_endpoint',
  (typeof ENDPOINT_COLUMNS)[number] | 'previous_secret_expires_at'
>;

/** An endpoint in an event for another one: partners put tokens into the paths of URLs. */
export const presentEndpointForOthers = (row: WebhookEndpointRow): WebhookEndpointResource => ({
  ...presentWebhookEndpoint(row),
  url: new URL(row.url).origin,
});

/** @param secret only if it was just created, as it is never shown again */
export function presentWebhookEndpoint(
  row: WebhookEndpointRow,
  secret: string | null = null,
): WebhookEndpointResource {
  const { last_failure_at: failedAt, last_failure_error: error } = row;
  return {
    id: row.id,
    object: 'webhook_endpoint',
    url: row.url,
    mode: row.mode,
    event_types: row.event_types,
    description: row.description,
    status: row.status,
    disabled_reason: row.disabled_reason,
    standard_webhooks: row.standard_headers,
    ...(secret !== null && { secret }),
    previous_secret_expires_at: isoTime(row.previous_secret_expires_at),
    consecutive_failures: row.consecutive_failures,
    failing_since: isoTime(row.failing_since),
    last_success_at: isoTime(row.last_success_at),
    last_failure:
      failedAt === null || error === null
        ? null
        : { at: isoTime(failedAt), http_status: row.last_failure_http_status, error },
    created: isoTime(row.created_at),
  };
}
