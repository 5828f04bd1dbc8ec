import { z } from 'zod';
import { askingKey } from '../api/http/asking-key.ts';
import { declare, resource } from '../api/http/route.ts';
import { authorOf } from '../requests/operator-context.ts';
import { presentWebhookEndpoint, WebhookEndpointResource } from './endpoint-resource.ts';
import { setEndpoint } from './endpoints.ts';
import {
  checkedUrl,
  deleteEndpoint,
  rotateSecret,
  StandardWebhooks,
  sendTestEvent,
  showEndpoint,
  type WebhookDependencies,
  WebhookUrl,
} from './endpoints-routes.ts';
import { ROTATED_ENDPOINT, WEBHOOK_ENDPOINT, WEBHOOK_SECRET } from './examples.ts';
import { EventResource, eventExample } from './resource.ts';

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

export const webhooks = resource(
  { getWebhookEndpoint, putWebhookEndpoint, deleteWebhookEndpoint, rotateWebhookSecret, testWebhookEndpoint },
  (dependencies: WebhookDependencies) => ({
    getWebhookEndpoint: (input) => showEndpoint(dependencies, input),

    async putWebhookEndpoint({ caller, body, ...input }) {
      const { orm, ring, webhookAllowLoopbackHttp, endpointsChanged } = dependencies;
      const { partnerId, mode } = caller;
      const url = checkedUrl(body.url, webhookAllowLoopbackHttp);
      const { endpoints, secret } = await setEndpoint(
        { orm, ring, ...authorOf(askingKey({ caller, ...input })) },
        { partnerId, modes: [mode], url, standardWebhooks: body.standard_webhooks },
      );
      endpointsChanged();
      const [endpoint] = endpoints;
      if (endpoint === undefined) throw new Error('an endpoint that was set is there');
      return { status: 200, body: presentWebhookEndpoint(endpoint, secret) };
    },

    deleteWebhookEndpoint: (input) => deleteEndpoint(dependencies, input),
    rotateWebhookSecret: (input) => rotateSecret(dependencies, input),
    testWebhookEndpoint: (input) => sendTestEvent(dependencies, input),
  }),
);
