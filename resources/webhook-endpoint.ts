import { z } from 'zod';
import type { Row } from '../db/tables.ts';
import { ObjectType } from '../domain/fields.ts';
import { Mode } from '../domain/mode.ts';

/** Where an account's events go, as partners see it (docs/partners/webhooks.md). */
export const WebhookEndpointResource = z
  .object({
    object: ObjectType('webhook_endpoint'),
    url: z.string().describe('Where events are sent.'),
    mode: Mode,
    status: z
      .enum(['enabled', 'disabled'])
      .describe('We send nothing to a `disabled` endpoint. Its events are parked until you set it again.'),
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
    created: z.iso.datetime().describe('When the endpoint was first set.'),
  })
  .meta({ id: 'WebhookEndpoint', description: 'Where the events of one mode are sent.' });
export type WebhookEndpointResource = z.infer<typeof WebhookEndpointResource>;

/** The columns of an endpoint's row that may be shown. `previous_secret_expires_at` is null once it has passed. */
export type WebhookEndpointRow = Row<
  'webhook_endpoint',
  | 'partner_id'
  | 'mode'
  | 'url'
  | 'status'
  | 'disabled_reason'
  | 'standard_headers'
  | 'previous_secret_expires_at'
  | 'created_at'
>;

/** @param secret only if it was just created, as it is never shown again */
export function presentWebhookEndpoint(
  row: WebhookEndpointRow,
  secret: string | null = null,
): WebhookEndpointResource {
  const expiresAt = row.previous_secret_expires_at;
  return {
    object: 'webhook_endpoint',
    url: row.url,
    mode: row.mode,
    status: row.status,
    disabled_reason: row.disabled_reason,
    standard_webhooks: row.standard_headers,
    ...(secret !== null && { secret }),
    previous_secret_expires_at: expiresAt === null ? null : new Date(expiresAt).toISOString(),
    created: new Date(row.created_at).toISOString(),
  };
}
