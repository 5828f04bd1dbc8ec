import { z } from 'zod';
import { queueResend } from '../../commands/queue-resend.ts';
import type { Orm } from '../../db/orm.ts';
import { ApiError } from '../../domain/api-error.ts';
import { DeliveryStatus } from '../../domain/delivery-status.ts';
import { EventResource } from '../../domain/event-resource.ts';
import { EventType } from '../../domain/event-type.ts';
import { isId } from '../../domain/ids.ts';
import { Limit, listOf, presentList, StartingAfter } from '../list-envelope.ts';
import { readEvent, readEventPage } from '../read-events.ts';
import { route } from '../route.ts';
import type { WebhookDependencies } from '../webhook-dependencies.ts';

const Timestamp = z.iso
  .datetime({
    offset: true,
    error: 'must be an ISO 8601 timestamp with a time zone, such as 2026-11-20T08:00:00.000Z',
  })
  .transform((text) => new Date(text))
  .optional();

export const listEvents = ({ orm }: { orm: Orm }) =>
  route({
    method: 'get',
    path: '/events',
    summary: 'List the events of the last 30 days, newest first',
    description: 'With or without a webhook endpoint: what was missed can be caught up with here.',
    query: z.strictObject({
      limit: Limit,
      starting_after: StartingAfter('evt'),
      type: EventType.optional(),
      delivery_status: DeliveryStatus.optional(),
      created_gte: Timestamp.meta({ description: 'Created then or later.' }),
      created_lte: Timestamp.meta({ description: 'Created then or before.' }),
    }),
    responses: { 200: listOf(EventResource) },
    async handle({ caller, query }) {
      const events = await readEventPage(orm, caller, {
        limit: query.limit,
        startingAfter: query.starting_after,
        type: query.type,
        status: query.delivery_status,
        from: query.created_gte,
        until: query.created_lte,
      });
      return { status: 200, body: presentList(events, query.limit) };
    },
  });

export const getEvent = ({ orm }: { orm: Orm }) =>
  route({
    method: 'get',
    path: '/events/:eventId',
    summary: 'Read an event, with every attempt to deliver it',
    query: z.strictObject({}),
    responses: { 200: EventResource },
    errors: ['event_not_found'],
    handle: async ({ caller, params }) => ({
      status: 200,
      body: await readEvent(orm, caller, params.eventId ?? ''),
    }),
  });

export const resendEvent = ({ orm, eventsWritten }: WebhookDependencies) =>
  route({
    method: 'post',
    path: '/events/:eventId/resend',
    summary: 'Send an event again, now',
    description: 'Same id, same body. If it fails, the retries start anew.',
    query: z.strictObject({}),
    responses: { 202: EventResource },
    errors: ['event_not_found', 'webhook_endpoint_not_found', 'invalid_state'],
    async handle({ caller, params: { eventId = '' } }) {
      if (!isId('evt', eventId)) throw new ApiError('event_not_found');
      await queueResend(orm, caller, eventId);
      eventsWritten();
      return { status: 202, body: await readEvent(orm, caller, eventId) };
    },
  });
