import { z } from 'zod';
import { Mode } from './mode.ts';

/** Where an account's events go, as partners see it (decisions.md, "Webhook endpoint"). */
export const WebhookEndpointResource = z.object({
  object: z.literal('webhook_endpoint'),
  url: z.string(),
  mode: Mode,
  status: z.enum(['enabled', 'disabled']),
  disabled_reason: z.string().nullable(),
  standard_webhooks: z
    .boolean()
    .meta({ description: 'Whether the headers of Standard Webhooks are sent too.' }),
  secret: z.string().optional().meta({ description: 'Only when it was created or rotated.' }),
  previous_secret_expires_at: z.iso.datetime().nullable(),
  created: z.iso.datetime(),
});
export type WebhookEndpointResource = z.infer<typeof WebhookEndpointResource>;

/** What is shown of a row of table `webhook_endpoint`, as the driver gives it. */
export interface WebhookEndpointRow {
  partner_id: string;
  mode: Mode;
  url: string;
  status: 'enabled' | 'disabled';
  disabled_reason: string | null;
  standard_headers: boolean;
  /** Null once it has expired. */
  previous_secret_expires_at: Date | string | null;
  created_at: Date | string;
}

/** @param secret where it was made just now: it is shown this once */
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
