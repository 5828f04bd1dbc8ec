import { defineEntity, p } from '@mikro-orm/core';
import type { DeliveryStatus } from '../domain/event.ts';
import type { Mode } from '../domain/mode.ts';

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
    /**
     * Null for every endpoint that wants its type; otherwise it goes only to this one, or to all but that
     * one.
     */
    onlyEndpointId: p.text().nullable(),
    exceptEndpointId: p.text().nullable(),
  },
});

/** Where an account's events go: one of up to five places. */
export const WebhookEndpointEntity = defineEntity({
  name: 'WebhookEndpoint',
  tableName: 'webhook_endpoint',
  properties: {
    id: p.text().collation('C').primary(),
    partnerId: p.text().collation('C'),
    mode: p.text().$type<Mode>().collation('C'),
    url: p.text(),
    status: p.text().$type<'enabled' | 'disabled'>().default('enabled'),
    disabledReason: p.text().nullable(),
    standardHeaders: p.boolean().default(false),
    /** Both secrets are sealed. */
    secret: p.blob(),
    previousSecret: p.blob().nullable(),
    previousSecretExpiresAt: p.datetime().nullable(),
    createdAt: p.datetime().defaultRaw('now()'),
    /** When all of the endpoint's allowance of workflows to tell is available again. */
    workflowsFullAt: p.datetime().defaultRaw("'-infinity'"),
    /** The types of events it wants; null for all. */
    eventTypes: p.array().nullable(),
    description: p.text().nullable(),
    /** Failed attempts since the last success. */
    consecutiveFailures: p.integer().default(0),
    /** When the first of them ended. */
    failingSince: p.datetime().nullable(),
    lastSuccessAt: p.datetime().nullable(),
    lastFailureAt: p.datetime().nullable(),
    lastFailureHttpStatus: p.smallint().nullable(),
    lastFailureError: p.text().nullable(),
    /** Whether its account was told since the last success that it is failing, or is to be told. */
    failingTold: p.boolean().default(false),
    /** Whether its account is still to be told. */
    failingOwed: p.boolean().default(false),
  },
});

/** How far the delivery of an event to an endpoint has got. */
export const DeliveryEntity = defineEntity({
  name: 'Delivery',
  tableName: 'delivery',
  properties: {
    eventId: p.text().collation('C').primary(),
    /** Empty if no endpoint wanted the event. */
    endpointId: p.text().collation('C').primary(),
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
    /** Whether a replay has sent it: then it is sent after the endpoint's other events. */
    replayed: p.boolean().default(false),
  },
});

export const DeliveryAttemptEntity = defineEntity({
  name: 'DeliveryAttempt',
  tableName: 'delivery_attempt',
  properties: {
    eventId: p.text().collation('C').primary(),
    endpointId: p.text().collation('C').primary(),
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

/** How many events an account can still ask for. It outlives the account's endpoints. */
export const WebhookAllowanceEntity = defineEntity({
  name: 'WebhookAllowance',
  tableName: 'webhook_allowance',
  properties: {
    partnerId: p.text().collation('C').primary(),
    mode: p.text().$type<Mode>().collation('C').primary(),
    /** When all of it is available again. */
    fullAt: p.datetime().defaultRaw('now()'),
  },
});

/** A partner's order to send events to an endpoint again, and how far it has got. */
export const WebhookReplayEntity = defineEntity({
  name: 'WebhookReplay',
  tableName: 'webhook_replay',
  properties: {
    id: p.text().collation('C').primary(),
    partnerId: p.text().collation('C'),
    mode: p.text().$type<Mode>().collation('C'),
    endpointId: p.text().collation('C'),
    status: p.text().$type<'running' | 'completed'>(),
    wanted: p.text().$type<'undelivered' | 'given_up' | 'all'>(),
    /** Null for all types that the endpoint wants. */
    eventTypes: p.array().nullable(),
    /** Events up to this one have been looked at. */
    afterEventId: p.text().collation('C'),
    beforeEventId: p.text().collation('C'),
    /** The events in line that were not sent yet at the last look. */
    inLine: p.array().defaultRaw("'{}'"),
    matched: p.integer(),
    sent: p.integer().default(0),
    /** When it may put more in line. */
    dueAt: p.datetime().defaultRaw('clock_timestamp()'),
    createdAt: p.datetime(),
  },
});
