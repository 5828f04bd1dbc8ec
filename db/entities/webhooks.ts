import { defineEntity, p } from '@mikro-orm/core';
import type { DeliveryStatus } from '../../domain/event.ts';
import type { Mode } from '../../domain/mode.ts';

/** Something that happened to an account, as its partner is told about it. */
export const EventEntity = defineEntity({
  name: 'Event',
  tableName: 'event',
  properties: {
    id: p.text().collation('C').primary(),
    partnerId: p.text(),
    mode: p.text().$type<Mode>(),
    type: p.text(),
    cardId: p.text().collation('C').nullable(),
    /** The exact text that is sent. */
    body: p.text(),
    createdAt: p.datetime(),
  },
});

/** Where an account's events go. */
export const WebhookEndpointEntity = defineEntity({
  name: 'WebhookEndpoint',
  tableName: 'webhook_endpoint',
  properties: {
    partnerId: p.text().collation('C').primary(),
    mode: p.text().$type<Mode>().collation('C').primary(),
    url: p.text(),
    status: p.text().$type<'enabled' | 'disabled'>().default('enabled'),
    disabledReason: p.text().nullable(),
    standardHeaders: p.boolean().default(false),
    /** Both secrets are sealed. */
    secret: p.blob(),
    previousSecret: p.blob().nullable(),
    previousSecretExpiresAt: p.datetime().nullable(),
    /** When all of the partner's allowance of requested events is available again. */
    allowanceFullAt: p.datetime().defaultRaw('now()'),
    createdAt: p.datetime().defaultRaw('now()'),
    /** When all of the account's allowance of workflows to tell is available again. */
    workflowsFullAt: p.datetime().defaultRaw("'-infinity'"),
  },
});

/** How far the delivery of an event has got. */
export const DeliveryEntity = defineEntity({
  name: 'Delivery',
  tableName: 'delivery',
  properties: {
    eventId: p.text().collation('C').primary(),
    partnerId: p.text().collation('C'),
    mode: p.text().$type<Mode>().collation('C'),
    status: p.text().$type<DeliveryStatus>(),
    attemptCount: p.integer().default(0),
    leaseExpiresAt: p.datetime().defaultRaw("'-infinity'"),
    nextAttemptAt: p.datetime().nullable(),
    /** Attempts since the schedule began. */
    scheduleAttempts: p.integer().default(0),
    /** Whether the event has a workflow, and whether that was told of the latest change. */
    workflow: p.text().$type<'none' | 'untold' | 'told'>().default('none'),
    /** The event's type. */
    type: p.text().collation('C'),
  },
});

export const DeliveryAttemptEntity = defineEntity({
  name: 'DeliveryAttempt',
  tableName: 'delivery_attempt',
  properties: {
    eventId: p.text().collation('C').primary(),
    number: p.integer().primary(),
    startedAt: p.datetime(),
    durationMs: p.integer(),
    delivered: p.boolean(),
    httpStatus: p.smallint().nullable(),
    /** A short code; null if the answer was 2xx. */
    error: p.text().nullable(),
    /** The beginning of a failed attempt's response, sealed. */
    answerStart: p.blob().nullable(),
  },
});
