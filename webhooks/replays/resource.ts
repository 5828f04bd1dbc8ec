import { z } from 'zod';
import { ObjectType } from '../../domain/fields.ts';
import { Mode } from '../../domain/mode.ts';
import type { Row } from '../../platform/db/entities.ts';

/**
 * An order to send events to an endpoint again, as partners see it
 * (docs/partners/webhooks.md#replaying-events).
 */
export const WebhookReplayResource = z
  .object({
    id: z.string().describe('Prefix `rpl_`.'),
    object: ObjectType('webhook_replay'),
    endpoint_id: z.string().describe('The endpoint that the events are sent to.'),
    status: z
      .enum(['running', 'completed'])
      .describe('`completed`: each event was sent once more, or parked because the endpoint was disabled.'),
    matched: z.int().min(0).describe('How many events there are to send.'),
    sent: z
      .int()
      .min(0)
      .describe(
        'How many of them were sent, whatever the response. Those that failed are retried like any other. One that was answered ' +
          'with 410 is not counted: it is parked.',
      ),
    mode: Mode,
    created: z.iso.datetime().describe('When you asked for it.'),
  })
  .meta({ id: 'WebhookReplay', description: 'Events that are sent to a webhook endpoint again.' });
export type WebhookReplayResource = z.infer<typeof WebhookReplayResource>;

export const REPLAY_COLUMNS = [
  'id',
  'mode',
  'endpoint_id',
  'status',
  'wanted',
  'matched',
  'sent',
  'created_at',
] as const;

export type WebhookReplayRow = Row<'webhook_replay', (typeof REPLAY_COLUMNS)[number]>;

export function presentWebhookReplay(row: WebhookReplayRow): WebhookReplayResource {
  return {
    id: row.id,
    object: 'webhook_replay',
    endpoint_id: row.endpoint_id,
    status: row.status,
    matched: row.matched,
    sent: row.sent,
    mode: row.mode,
    created: new Date(row.created_at).toISOString(),
  };
}
