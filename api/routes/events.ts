import { z } from 'zod';
import { queueResend } from '../../commands/webhooks/queue-resend.ts';
import type { Orm } from '../../db/orm.ts';
import { ApiError } from '../../domain/api-error.ts';
import { DeliveryStatus, EventType } from '../../domain/event.ts';
import { isId } from '../../domain/ids.ts';
import { EventResource } from '../../resources/event.ts';
import { Limit, listOf, presentList, StartingAfter } from '../http/list-envelope.ts';
import { route } from '../http/route.ts';
import * as EXAMPLES from '../openapi/examples.ts';
import { readEvent, readEventPage } from '../read-events.ts';
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
    operationId: 'events.list',
    summary: 'List events',
    description:
      'The events of the last 30 days, newest first, whether or not you have a webhook endpoint. Catch up here on what you missed.',
    query: z.strictObject({
      limit: Limit,
      starting_after: StartingAfter('evt'),
      type: EventType.optional().describe('Only events of this type.'),
      delivery_status: DeliveryStatus.optional().describe('Only events whose delivery has this status.'),
      created_gte: Timestamp.describe('Only events created at this time or later.'),
      created_lte: Timestamp.describe('Only events created at this time or earlier.'),
    }),
    responses: { 200: listOf(EventResource) },
    examples: { 200: EXAMPLES.listOf(EXAMPLES.EVENT) },
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
    operationId: 'events.get',
    summary: 'Retrieve an event',
    description: 'The event with every attempt to deliver it.',
    query: z.strictObject({}),
    responses: { 200: EventResource },
    examples: { 200: EXAMPLES.EVENT },
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
    operationId: 'events.resend',
    summary: 'Resend an event',
    description: 'Sends it now, with the same id and the same body. If that fails, the retries start over.',
    query: z.strictObject({}),
    responses: { 202: EventResource },
    examples: { 202: EXAMPLES.RESENT_EVENT },
    errors: ['event_not_found', 'webhook_endpoint_not_found', 'invalid_state'],
    async handle({ caller, params: { eventId = '' } }) {
      if (!isId('evt', eventId)) throw new ApiError('event_not_found');
      await queueResend(orm, caller, eventId);
      eventsWritten();
      return { status: 202, body: await readEvent(orm, caller, eventId) };
    },
  });
