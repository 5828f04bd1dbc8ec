import { z } from 'zod';
import { askingKey } from '../api/http/asking-key.ts';
import { accountPage, declareList, type PageValues, pageRows, pageValues } from '../api/http/list.ts';
import { presentList } from '../api/http/list-envelope.ts';
import { declare, type RouteInput, resource } from '../api/http/route.ts';
import { ApiError } from '../domain/api-error.ts';
import { EventType, MAX_ENDPOINTS } from '../domain/event.ts';
import { Label } from '../domain/fields.ts';
import { isId } from '../domain/ids.ts';
import type { Tenant } from '../domain/mode.ts';
import type { ReadList } from '../platform/db/read-replica.ts';
import { tenantStatement } from '../platform/db/sql.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { authorOf } from '../requests/operator-context.ts';
import { parseWebhookUrl, WEBHOOK_URL_PROBLEMS } from './client/webhook-url.ts';
import {
  presentWebhookEndpoint,
  WebhookEndpointResource,
  type WebhookEndpointRow,
} from './endpoint-resource.ts';
import { rotateEndpointSecret } from './endpoint-secrets.ts';
import { changeEndpoint, createEndpoint, removeEndpoint } from './endpoints.ts';
import { readEvent } from './events-routes.ts';
import { ROTATED_ENDPOINT, SECOND_ENDPOINT, WEBHOOK_SECRET } from './examples.ts';
import { type EndpointId, endpointNotFound, readEndpoint, shownEndpointColumns } from './reads.ts';
import { EventResource, eventExample } from './resource.ts';
import { sendPing } from './send-on-request.ts';

const MAX_URL_LENGTH = 2_048;

export const WebhookUrl = z
  .string({ error: 'must be a string' })
  .refine((url) => [...url].length <= MAX_URL_LENGTH, 'must be at most 2,048 characters long')
  .meta({
    format: 'uri',
    maxLength: MAX_URL_LENGTH,
    description: 'Where to send events: an https:// URL on port 443 or above 1023, at a public address.',
  });

export const StandardWebhooks = z.boolean({ error: 'must be true or false' }).optional();

const SETTINGS = {
  event_types: z
    .array(EventType, { error: 'must be a list of event types, or null for all' })
    .min(1, 'must have at least one event type; null stands for all')
    .max(100, 'must have at most 100 event types')
    .nullable()
    .optional()
    .describe(
      'The types of events to send there. Null, or left out at first: all types, future ones included.',
    ),
  description: Label(255).nullable().optional().describe('Your own words about it, up to 255 characters.'),
  standard_webhooks: StandardWebhooks.describe('Whether to send the Standard Webhooks headers as well.'),
};

const CreateRequest = z
  .strictObject({ url: WebhookUrl, ...SETTINGS })
  .meta({ id: 'CreateWebhookEndpointRequest', description: 'Where to send events, and which.' });

const UpdateRequest = z
  .strictObject({
    url: WebhookUrl.optional(),
    ...SETTINGS,
    status: z
      .enum(['enabled', 'disabled'], { error: 'must be enabled or disabled' })
      .optional()
      .describe('`disabled` parks its events; `enabled` sends them.'),
  })
  .refine((body) => Object.keys(body).length > 0, { error: 'must have at least one field' })
  .meta({
    id: 'UpdateWebhookEndpointRequest',
    description: 'What to change. What you leave out stays.',
    minProperties: 1,
  });

const createWebhookEndpoint = declare({
  method: 'post',
  path: '/webhook-endpoints',
  scope: 'webhooks:write',
  operationId: 'webhookEndpoints.create',
  summary: 'Create a webhook endpoint',
  description:
    `Adds an endpoint to the key's mode, which can have up to ${MAX_ENDPOINTS}, disabled ones included. It gets the events that ` +
    "happen from now on. The response has the secret. Store it: we don't show it again, so this path takes no Idempotency-Key.",
  body: CreateRequest,
  responses: { 201: WebhookEndpointResource },
  examples: {
    body: {
      url: SECOND_ENDPOINT.url,
      event_types: SECOND_ENDPOINT.event_types,
      description: SECOND_ENDPOINT.description,
    },
    201: { ...SECOND_ENDPOINT, secret: WEBHOOK_SECRET },
  },
  errors: ['webhook_endpoint_url_taken', 'limit_exceeded'],
});

const listWebhookEndpoints = declareList({
  path: '/webhook-endpoints',
  scope: 'events:read',
  operationId: 'webhookEndpoints.list',
  summary: 'List webhook endpoints',
  description: "The endpoints of the key's mode, newest first, without their secrets.",
  idPrefix: 'we',
  item: WebhookEndpointResource,
  example: SECOND_ENDPOINT,
});

const getWebhookEndpointById = declare({
  method: 'get',
  path: '/webhook-endpoints/:endpointId',
  scope: 'events:read',
  operationId: 'webhookEndpoints.get',
  summary: 'Retrieve a webhook endpoint',
  description: 'Where it sends events, and how its attempts went.',
  responses: { 200: WebhookEndpointResource },
  examples: { 200: SECOND_ENDPOINT },
  errors: ['webhook_endpoint_not_found'],
});

const updateWebhookEndpoint = declare({
  method: 'patch',
  path: '/webhook-endpoints/:endpointId',
  scope: 'webhooks:write',
  operationId: 'webhookEndpoints.update',
  summary: 'Change a webhook endpoint',
  description:
    'Changes the fields that you send. Other event types hold for events that happen from now on. If you enable it, its parked ' +
    'events are sent.',
  body: UpdateRequest,
  responses: { 200: WebhookEndpointResource },
  examples: { body: { description: 'Accounting', status: 'enabled' }, 200: SECOND_ENDPOINT },
  errors: ['webhook_endpoint_not_found', 'webhook_endpoint_url_taken'],
});

const deleteWebhookEndpointById = declare({
  method: 'delete',
  path: '/webhook-endpoints/:endpointId',
  scope: 'webhooks:write',
  operationId: 'webhookEndpoints.delete',
  summary: 'Delete a webhook endpoint',
  description: 'We send nothing more there, and give up what was not delivered.',
  responses: { 204: z.null() },
  examples: {},
  errors: ['webhook_endpoint_not_found'],
});

const rotateWebhookEndpointSecret = declare({
  method: 'post',
  path: '/webhook-endpoints/:endpointId/rotate-secret',
  scope: 'webhooks:write',
  operationId: 'webhookEndpoints.rotateSecret',
  summary: "Rotate a webhook endpoint's secret",
  description:
    "The response has the new secret, which we sign with from now on. Store it: we don't show it again. For 24 hours, until " +
    '`previous_secret_expires_at`, the Standard Webhooks header has a signature with the previous secret too.',
  responses: { 200: WebhookEndpointResource },
  examples: { 200: ROTATED_ENDPOINT },
  errors: ['webhook_endpoint_not_found'],
});

const testWebhookEndpointById = declare({
  method: 'post',
  path: '/webhook-endpoints/:endpointId/test',
  scope: 'webhooks:write',
  operationId: 'webhookEndpoints.test',
  summary: 'Send a test event to a webhook endpoint',
  description:
    'Sends an event of type `ping` to this endpoint alone, whatever its `event_types`. It is delivered, retried and listed like ' +
    'any other.',
  responses: { 202: EventResource },
  examples: { 202: eventExample('ping', { status: 'pending', attempts: [] }) },
  errors: ['webhook_endpoint_not_found', 'invalid_state'],
});

export interface WebhookDependencies extends CommandContext {
  readList: ReadList;
  webhookAllowLoopbackHttp: boolean;
  /** Tells the relays that there is something to send. */
  eventsWritten(): void;
  /** Tells the workers that an endpoint was enabled or deleted. */
  endpointsChanged(): void;
}

export const webhookEndpoints = resource(
  {
    createWebhookEndpoint,
    listWebhookEndpoints,
    getWebhookEndpointById,
    updateWebhookEndpoint,
    deleteWebhookEndpointById,
    rotateWebhookEndpointSecret,
    testWebhookEndpointById,
  },
  (dependencies: WebhookDependencies) => ({
    async createWebhookEndpoint({ caller, body, ...input }) {
      const { orm, ring, webhookAllowLoopbackHttp } = dependencies;
      const author = authorOf(askingKey({ caller, ...input }));
      const { endpoint, secret } = await createEndpoint({ orm, ring, ...author }, caller, {
        url: checkedUrl(body.url, webhookAllowLoopbackHttp),
        standardWebhooks: body.standard_webhooks,
        eventTypes: body.event_types && [...new Set(body.event_types)],
        description: body.description,
      });
      return { status: 201, body: presentWebhookEndpoint(endpoint, secret) };
    },

    async listWebhookEndpoints({ caller, query }) {
      const rows = await dependencies.readList((from) =>
        selectPage(from.em.fork(), caller, pageValues(query)),
      );
      const endpoints = pageRows<WebhookEndpointRow>(rows, 'a webhook endpoint');
      const shown = endpoints.map((row) => presentWebhookEndpoint(row));
      return { status: 200, body: presentList(shown, query.limit) };
    },

    getWebhookEndpointById: (input) => showEndpoint(dependencies, input),

    async updateWebhookEndpoint({ caller, params: { endpointId = '' }, body, ...input }) {
      const { orm, webhookAllowLoopbackHttp, endpointsChanged, eventsWritten } = dependencies;
      const author = authorOf(askingKey({ caller, ...input }));
      const url = body.url === undefined ? undefined : checkedUrl(body.url, webhookAllowLoopbackHttp);
      if (!isId('we', endpointId)) throw endpointNotFound(endpointId);
      const endpoint = await changeEndpoint({ orm, ...author }, caller, endpointId, {
        url,
        standardWebhooks: body.standard_webhooks,
        eventTypes: body.event_types && [...new Set(body.event_types)],
        description: body.description,
        status: body.status,
      });
      if (body.status === 'enabled') endpointsChanged();
      if (body.status === 'disabled') eventsWritten();
      return { status: 200, body: presentWebhookEndpoint(endpoint) };
    },

    deleteWebhookEndpointById: (input) => deleteEndpoint(dependencies, input),
    rotateWebhookEndpointSecret: (input) => rotateSecret(dependencies, input),
    testWebhookEndpointById: (input) => sendTestEvent(dependencies, input),
  }),
);

/** The URL as it is stored. @throws ApiError `validation_failed` */
export function checkedUrl(url: string, allowLoopbackHttp: boolean): string {
  const target = parseWebhookUrl(url, { allowLoopbackHttp });
  if ('problem' in target) throw ApiError.ofField('url', `url ${WEBHOOK_URL_PROBLEMS[target.problem]}`);
  return target.href;
}

// What `/webhook-endpoints/{endpointId}` does to that endpoint, `/webhook-endpoint` does to the oldest one.

type AboutEndpoint = Pick<RouteInput, 'caller' | 'params' | 'requestId' | 'clientAddress'>;

/** Null for the oldest. @throws ApiError `webhook_endpoint_not_found` for an id of another shape */
function requestedId({ params: { endpointId } }: AboutEndpoint): EndpointId {
  if (endpointId === undefined) return null;
  if (!isId('we', endpointId)) throw endpointNotFound(endpointId);
  return endpointId;
}

export async function showEndpoint({ orm }: WebhookDependencies, input: AboutEndpoint) {
  const endpoint = await readEndpoint(orm.em.fork(), input.caller, requestedId(input));
  return { status: 200 as const, body: presentWebhookEndpoint(endpoint) };
}

export async function deleteEndpoint({ orm, endpointsChanged }: WebhookDependencies, input: AboutEndpoint) {
  const endpointId = requestedId(input);
  const context = { orm, ...authorOf(askingKey(input)) };
  if (!(await removeEndpoint(context, input.caller, endpointId))) throw endpointNotFound(endpointId);
  endpointsChanged();
  return { status: 204 as const, body: null };
}

export async function rotateSecret({ orm, ring }: WebhookDependencies, input: AboutEndpoint) {
  const endpointId = requestedId(input);
  const { partnerId, mode } = input.caller;
  const context = { orm, ring, ...authorOf(askingKey(input)) };
  const wanted = { partnerId, modes: [mode], endpointId };
  const { endpoints, secret } = await rotateEndpointSecret(context, wanted);
  const [endpoint] = endpoints;
  if (endpoint === undefined) throw endpointNotFound(endpointId);
  return { status: 200 as const, body: presentWebhookEndpoint(endpoint, secret) };
}

export async function sendTestEvent({ orm, eventsWritten }: WebhookDependencies, input: AboutEndpoint) {
  const eventId = await sendPing(orm, input.caller, requestedId(input));
  eventsWritten();
  return { status: 202 as const, body: await readEvent(orm, input.caller, eventId) };
}

const selectPage = tenantStatement((db, values: Tenant & PageValues) =>
  accountPage(
    db,
    values,
    { table: 'webhook_endpoint', columns: ['partner_id', 'mode', 'id'], idPrefix: 'we' },
    {},
  )
    .leftJoinLateral(
      ({ selectFrom }) =>
        selectFrom('webhook_endpoint')
          .select(shownEndpointColumns)
          .whereRef('id', '=', 'page.id')
          .where('partner_id', '=', values.partnerId)
          .where('mode', '=', values.mode)
          .as('shown'),
      (join) => join.onTrue(),
    )
    .selectAll('shown'),
);
