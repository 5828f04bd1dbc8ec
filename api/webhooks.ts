import { z } from 'zod';
import type { CommandContext } from '../commands/command-context.ts';
import { rotateEndpointSecret } from '../commands/webhooks/endpoint-secrets.ts';
import { removeEndpoint, setEndpoint } from '../commands/webhooks/endpoints.ts';
import { readEndpoints } from '../commands/webhooks/read-endpoints.ts';
import { sendPing } from '../commands/webhooks/send-on-request.ts';
import { ApiError } from '../domain/api-error.ts';
import { parseWebhookUrl, WEBHOOK_URL_PROBLEMS } from '../domain/webhook-url.ts';
import { EventResource, eventExample } from '../resources/event.ts';
import * as EXAMPLES from '../resources/examples.ts';
import {
  presentWebhookEndpoint,
  WebhookEndpointResource,
  type WebhookEndpointRow,
} from '../resources/webhook-endpoint.ts';
import { readEvent } from './events.ts';
import { declare, resource } from './http/route.ts';

const MAX_URL_LENGTH = 2_048;

const SetRequest = z
  .strictObject({
    url: z
      .string({ error: 'must be a string' })
      .refine((url) => [...url].length <= MAX_URL_LENGTH, 'must be at most 2,048 characters long')
      .meta({
        format: 'uri',
        maxLength: MAX_URL_LENGTH,
        description: 'Where to send events: an https:// URL on port 443 or above 1023, at a public address.',
      }),
    standard_webhooks: z
      .boolean({ error: 'must be true or false' })
      .optional()
      .describe(
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
  description: "Where the events of the key's mode are sent.",
  query: z.strictObject({}),
  responses: { 200: WebhookEndpointResource },
  examples: { 200: EXAMPLES.WEBHOOK_ENDPOINT },
  errors: ['webhook_endpoint_not_found'],
});

const putWebhookEndpoint = declare({
  method: 'put',
  path: '/webhook-endpoint',
  scope: 'webhooks:write',
  operationId: 'webhookEndpoint.set',
  summary: 'Set the webhook endpoint',
  description:
    "Sets where the events of the key's mode are sent, and enables the endpoint. The first response has the secret. Store " +
    "it: we don't show it again. A new URL keeps the secret. Events that were parked while the endpoint was disabled are " +
    'sent.',
  query: z.strictObject({}),
  body: SetRequest,
  responses: { 200: WebhookEndpointResource },
  examples: {
    body: { url: EXAMPLES.WEBHOOK_ENDPOINT.url },
    200: { ...EXAMPLES.WEBHOOK_ENDPOINT, secret: EXAMPLES.WEBHOOK_SECRET },
  },
});

const deleteWebhookEndpoint = declare({
  method: 'delete',
  path: '/webhook-endpoint',
  scope: 'webhooks:write',
  operationId: 'webhookEndpoint.delete',
  summary: 'Delete the webhook endpoint',
  description: 'We send nothing more. You can still read events with `GET /events`.',
  query: z.strictObject({}),
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
  query: z.strictObject({}),
  responses: { 200: WebhookEndpointResource },
  examples: { 200: EXAMPLES.ROTATED_ENDPOINT },
  errors: ['webhook_endpoint_not_found'],
});

const testWebhookEndpoint = declare({
  method: 'post',
  path: '/webhook-endpoint/test',
  scope: 'webhooks:write',
  operationId: 'webhookEndpoint.test',
  summary: 'Send a test event',
  description: 'Sends an event of type `ping`, which is delivered, retried and listed like any other.',
  query: z.strictObject({}),
  responses: { 202: EventResource },
  examples: { 202: eventExample('ping', { status: 'pending', attempts: [] }) },
  errors: ['webhook_endpoint_not_found', 'invalid_state'],
});

export interface WebhookDependencies extends CommandContext {
  webhookAllowLoopbackHttp: boolean;
  /** Tells the relays that there is something to send. */
  eventsWritten(): void;
}

export const webhooks = resource(
  { getWebhookEndpoint, putWebhookEndpoint, deleteWebhookEndpoint, rotateWebhookSecret, testWebhookEndpoint },
  ({ orm, ring, webhookAllowLoopbackHttp, eventsWritten }: WebhookDependencies) => ({
    async getWebhookEndpoint({ caller }) {
      const [row] = await readEndpoints(orm.em.fork(), { partnerId: caller.partnerId, modes: [caller.mode] });
      return { status: 200, body: presentWebhookEndpoint(existing(row)) };
    },

    async putWebhookEndpoint({ caller: { partnerId, mode }, body }) {
      const target = parseWebhookUrl(body.url, { allowLoopbackHttp: webhookAllowLoopbackHttp });
      if ('problem' in target) throw ApiError.ofField('url', `url ${WEBHOOK_URL_PROBLEMS[target.problem]}`);
      const { endpoints, secret } = await setEndpoint(
        { orm, ring },
        { partnerId, modes: [mode], url: target.href, standardWebhooks: body.standard_webhooks },
      );
      return { status: 200, body: presentWebhookEndpoint(existing(endpoints[0]), secret) };
    },

    async deleteWebhookEndpoint({ caller }) {
      if (!(await removeEndpoint(orm, caller))) throw new ApiError('webhook_endpoint_not_found');
      return { status: 204, body: null };
    },

    async rotateWebhookSecret({ caller: { partnerId, mode } }) {
      const { endpoints, secret } = await rotateEndpointSecret({ orm, ring }, partnerId, [mode]);
      return { status: 200, body: presentWebhookEndpoint(existing(endpoints[0]), secret) };
    },

    async testWebhookEndpoint({ caller }) {
      const eventId = await sendPing(orm, caller);
      eventsWritten();
      return { status: 202, body: await readEvent(orm, caller, eventId) };
    },
  }),
);

function existing(row: WebhookEndpointRow | undefined): WebhookEndpointRow {
  if (row === undefined) throw new ApiError('webhook_endpoint_not_found');
  return row;
}
