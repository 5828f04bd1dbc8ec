import { z } from 'zod';
import { askingKey } from '../api/http/asking-key.ts';
import { declare, resource } from '../api/http/route.ts';
import { ApiError } from '../domain/api-error.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { authorOf } from '../requests/operator-context.ts';
import {
  presentWebhookEndpoint,
  WebhookEndpointResource,
  type WebhookEndpointRow,
} from './endpoint-resource.ts';
import { rotateEndpointSecret } from './endpoint-secrets.ts';
import { removeEndpoint, setEndpoint } from './endpoints.ts';
import { checkedUrl, StandardWebhooks, WebhookUrl } from './endpoints-routes.ts';
import { readEvent } from './events-routes.ts';
import { ROTATED_ENDPOINT, WEBHOOK_ENDPOINT, WEBHOOK_SECRET } from './examples.ts';
import { endpointNotFound, readEndpoint } from './reads.ts';
import { EventResource, eventExample } from './resource.ts';
import { sendPing } from './send-on-request.ts';

const SetRequest = z
  .strictObject({
    url: WebhookUrl,
    standard_webhooks: StandardWebhooks.describe(
      'Whether to send the Standard Webhooks headers as well. If you leave it out, the setting does not change.',
    ),
  })
  .meta({ id: 'SetWebhookEndpointRequest', description: 'Where to send events.' });

const getWebhookEndpoint = declare({
  method: 'get',
  path: '/webhook-endpoint',
  scope: 'events:read',
  operationId: 'webhookEndpoint.get',
  summary: 'Retrieve the webhook endpoint',
  description:
    "The oldest endpoint of the key's mode. If you have several, the other paths under `/webhook-endpoint` act on the oldest, " +
    'too.',
  responses: { 200: WebhookEndpointResource },
  examples: { 200: WEBHOOK_ENDPOINT },
  errors: ['webhook_endpoint_not_found'],
});

const putWebhookEndpoint = declare({
  method: 'put',
  path: '/webhook-endpoint',
  scope: 'webhooks:write',
  operationId: 'webhookEndpoint.set',
  summary: 'Set the webhook endpoint',
  description:
    "Sets where the oldest endpoint of the key's mode sends events, and enables it, or creates the first endpoint. The first " +
    'response has the secret. Store ' +
    "it: we don't show it again. A new URL keeps the secret. Events that were parked while the endpoint was disabled are " +
    'sent.',
  body: SetRequest,
  responses: { 200: WebhookEndpointResource },
  examples: {
    body: { url: WEBHOOK_ENDPOINT.url },
    200: { ...WEBHOOK_ENDPOINT, secret: WEBHOOK_SECRET },
  },
  errors: ['webhook_endpoint_url_taken'],
});

const deleteWebhookEndpoint = declare({
  method: 'delete',
  path: '/webhook-endpoint',
  scope: 'webhooks:write',
  operationId: 'webhookEndpoint.delete',
  summary: 'Delete the webhook endpoint',
  description:
    'We send nothing more there, and give up what was not delivered. The next endpoint is then the oldest. You can still ' +
    'read events with `GET /events`.',
  responses: { 204: z.null() },
  examples: {},
  errors: ['webhook_endpoint_not_found'],
});

const rotateWebhookSecret = declare({
  method: 'post',
  path: '/webhook-endpoint/rotate-secret',
  scope: 'webhooks:write',
  operationId: 'webhookEndpoint.rotateSecret',
  summary: 'Rotate the webhook secret',
  description:
    "The response has the new secret, which we sign with from now on. Store it: we don't show it again. For 24 hours, until " +
    '`previous_secret_expires_at`, the Standard Webhooks header has a signature with the previous secret too.',
  responses: { 200: WebhookEndpointResource },
  examples: { 200: ROTATED_ENDPOINT },
  errors: ['webhook_endpoint_not_found'],
});

const testWebhookEndpoint = declare({
  method: 'post',
  path: '/webhook-endpoint/test',
  scope: 'webhooks:write',
  operationId: 'webhookEndpoint.test',
  summary: 'Send a test event',
  description:
    'Sends an event of type `ping` to the oldest endpoint. It is delivered, retried and listed like any other.',
  responses: { 202: EventResource },
  examples: { 202: eventExample('ping', { status: 'pending', attempts: [] }) },
  errors: ['webhook_endpoint_not_found', 'invalid_state'],
});

export interface WebhookDependencies extends CommandContext {
  webhookAllowLoopbackHttp: boolean;
  /** Tells the relays that there is something to send. */
  eventsWritten(): void;
  /** Tells the workers that an endpoint was enabled or deleted. */
  endpointsChanged(): void;
}

export const webhooks = resource(
  { getWebhookEndpoint, putWebhookEndpoint, deleteWebhookEndpoint, rotateWebhookSecret, testWebhookEndpoint },
  ({ orm, ring, webhookAllowLoopbackHttp, eventsWritten, endpointsChanged }: WebhookDependencies) => ({
    getWebhookEndpoint: async ({ caller }) => ({
      status: 200,
      body: presentWebhookEndpoint(await readEndpoint(orm.em.fork(), caller, null)),
    }),

    async putWebhookEndpoint({ caller, body, ...input }) {
      const { partnerId, mode } = caller;
      const url = checkedUrl(body.url, webhookAllowLoopbackHttp);
      const { endpoints, secret } = await setEndpoint(
        { orm, ring, ...authorOf(askingKey({ caller, ...input })) },
        { partnerId, modes: [mode], url, standardWebhooks: body.standard_webhooks },
      );
      endpointsChanged();
      return { status: 200, body: presentWebhookEndpoint(existing(endpoints[0]), secret) };
    },

    async deleteWebhookEndpoint(input) {
      const context = { orm, ...authorOf(askingKey(input)) };
      if (!(await removeEndpoint(context, input.caller, null))) throw endpointNotFound(null);
      endpointsChanged();
      return { status: 204, body: null };
    },

    async rotateWebhookSecret(input) {
      const { partnerId, mode } = input.caller;
      const oldest = { partnerId, modes: [mode], endpointId: null };
      const context = { orm, ring, ...authorOf(askingKey(input)) };
      const { endpoints, secret } = await rotateEndpointSecret(context, oldest);
      return { status: 200, body: presentWebhookEndpoint(existing(endpoints[0]), secret) };
    },

    async testWebhookEndpoint({ caller }) {
      const eventId = await sendPing(orm, caller, null);
      eventsWritten();
      return { status: 202, body: await readEvent(orm, caller, eventId) };
    },
  }),
);

function existing(row: WebhookEndpointRow | undefined): WebhookEndpointRow {
  if (row === undefined) throw new ApiError('webhook_endpoint_not_found');
  return row;
}
