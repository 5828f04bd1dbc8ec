import { z } from 'zod';
import { declare, resource } from '../../api/http/route.ts';
import { ApiError } from '../../domain/api-error.ts';
import { EventType } from '../../domain/event.ts';
import { Timestamp } from '../../domain/fields.ts';
import { isId } from '../../domain/ids.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { WEBHOOK_REPLAY } from '../examples.ts';
import { endpointNotFound } from '../reads.ts';
import { presentWebhookReplay, WebhookReplayResource } from './resource.ts';
import { readWebhookReplay, startReplay } from './start.ts';

const ReplayRequest = z
  .strictObject({
    created_gte: Timestamp.describe('Events that were created at this time or later.'),
    created_lte: Timestamp.optional().describe(
      'Events that were created at this time or earlier. Default: now.',
    ),
    status: z
      .enum(['undelivered', 'given_up', 'all'], { error: 'must be undelivered, given_up or all' })
      .default('undelivered')
      .describe(
        '`undelivered`: what was not delivered to this endpoint and is not about to be, events from before it existed included. ' +
          '`given_up`: only what was given up there. `all`: what was delivered or is being retried there, too.',
      ),
    event_types: z
      .array(EventType, { error: 'must be a list of event types' })
      .min(1, 'must have at least one event type')
      .max(100, 'must have at most 100 event types')
      .optional()
      .describe('Only these types. In any case, only types that the endpoint wants.'),
  })
  .meta({ id: 'ReplayRequest', description: 'Which events to send again.' });

const replayWebhookEndpoint = declare({
  method: 'post',
  path: '/webhook-endpoints/:endpointId/replay',
  scope: 'webhooks:write',
  operationId: 'webhookEndpoints.replay',
  summary: 'Replay events',
  description:
    'Sends events to this endpoint again, with the same ids and bodies, oldest first. What happens meanwhile is sent first. An ' +
    'endpoint has one replay at a time. The range can have up to 250,000 events. Replays, resent events and pings share a limit of ' +
    'one per second, in bursts of up to 60.',
  body: ReplayRequest,
  responses: { 202: WebhookReplayResource },
  examples: {
    body: { created_gte: '2026-11-22T06:00:00.000Z', status: 'undelivered' },
    202: WEBHOOK_REPLAY,
  },
  errors: ['webhook_endpoint_not_found', 'invalid_state'],
});

const getWebhookReplay = declare({
  method: 'get',
  path: '/webhook-endpoints/:endpointId/replays/:replayId',
  scope: 'events:read',
  operationId: 'webhookEndpoints.getReplay',
  summary: 'Retrieve a replay',
  description: 'How far a replay has got. Replays are kept for 30 days, and are deleted with their endpoint.',
  responses: { 200: WebhookReplayResource },
  examples: { 200: { ...WEBHOOK_REPLAY, status: 'completed', sent: 214 } },
  errors: ['webhook_replay_not_found'],
});

export const webhookReplays = resource(
  { replayWebhookEndpoint, getWebhookReplay },
  ({ orm, endpointsChanged }: { orm: Orm; endpointsChanged(): void }) => ({
    async replayWebhookEndpoint({ caller, params: { endpointId = '' }, body }) {
      if (!isId('we', endpointId)) throw endpointNotFound(endpointId);
      const { created_gte: createdGte, created_lte: createdLte, status: wanted } = body;
      if (createdLte !== undefined && createdLte < createdGte)
        throw ApiError.ofField('created_lte', 'created_lte must not be before created_gte');
      const eventTypes = body.event_types ?? null;
      const replay = await startReplay(orm, caller, {
        endpointId,
        createdGte,
        createdLte,
        wanted,
        eventTypes,
      });
      endpointsChanged();
      return { status: 202, body: presentWebhookReplay(replay) };
    },

    async getWebhookReplay({ caller, params: { endpointId = '', replayId = '' } }) {
      if (!isId('we', endpointId) || !isId('rpl', replayId)) throw new ApiError('webhook_replay_not_found');
      return {
        status: 200,
        body: presentWebhookReplay(await readWebhookReplay(orm, caller, { endpointId, replayId })),
      };
    },
  }),
);
