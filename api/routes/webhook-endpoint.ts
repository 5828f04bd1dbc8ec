import { z } from 'zod';
import { removeEndpoint } from '../../commands/remove-endpoint.ts';
import { rotateEndpointSecret } from '../../commands/rotate-endpoint-secret.ts';
import { sendPing } from '../../commands/send-ping.ts';
import { setEndpoint } from '../../commands/set-endpoint.ts';
import { ENDPOINT_COLUMNS } from '../../db/endpoint-columns.ts';
import { tenantQuery } from '../../db/tenant-query.ts';
import { ApiError } from '../../domain/api-error.ts';
import { EventResource } from '../../domain/event-resource.ts';
import {
  presentWebhookEndpoint,
  WebhookEndpointResource,
  type WebhookEndpointRow,
} from '../../domain/webhook-endpoint-resource.ts';
import { parseWebhookUrl, WEBHOOK_URL_PROBLEMS } from '../../domain/webhook-url.ts';
import { readEvent } from '../read-events.ts';
import { route } from '../route.ts';
import type { WebhookDependencies } from '../webhook-dependencies.ts';

const MAX_URL_LENGTH = 2_048;

export const getWebhookEndpoint = ({ orm }: WebhookDependencies) =>
  route({
    method: 'get',
    path: '/webhook-endpoint',
    summary: "Where the events of the key's mode are sent",
    query: z.strictObject({}),
    responses: { 200: WebhookEndpointResource },
    errors: ['webhook_endpoint_not_found'],
    async handle({ caller }) {
      const [row] = await tenantQuery<WebhookEndpointRow>(
        orm.em.fork(),
        caller,
        `SELECT ${ENDPOINT_COLUMNS} FROM webhook_endpoint WHERE partner_id = $1 AND mode = $2`,
      );
      return { status: 200, body: presentWebhookEndpoint(existing(row)) };
    },
  });

export const putWebhookEndpoint = ({ orm, ring, webhookAllowLoopbackHttp }: WebhookDependencies) =>
  route({
    method: 'put',
    path: '/webhook-endpoint',
    summary: 'Set where the events are sent, and enable it',
    description:
      'The first time the answer has the secret, which is not shown again. Changing the URL keeps the secret. What was ' +
      'parked while the endpoint was disabled is sent.',
    query: z.strictObject({}),
    body: z.strictObject({
      url: z
        .string({ error: 'must be a string' })
        .refine((url) => [...url].length <= MAX_URL_LENGTH, 'must be at most 2,048 characters long')
        .meta({ format: 'uri', maxLength: MAX_URL_LENGTH }),
      standard_webhooks: z.boolean({ error: 'must be true or false' }).optional().meta({
        description: 'Send the headers of Standard Webhooks too. Left out: as it was, at first false.',
      }),
    }),
    responses: { 200: WebhookEndpointResource },
    async handle({ caller: { partnerId, mode }, body }) {
      const target = parseWebhookUrl(body.url, { allowLoopbackHttp: webhookAllowLoopbackHttp });
      if ('problem' in target) throw ApiError.ofField('url', `url ${WEBHOOK_URL_PROBLEMS[target.problem]}`);
      const { endpoints, secret } = await setEndpoint(
        { orm, ring },
        { partnerId, modes: [mode], url: target.href, standardWebhooks: body.standard_webhooks },
      );
      return { status: 200, body: presentWebhookEndpoint(existing(endpoints[0]), secret) };
    },
  });

export const deleteWebhookEndpoint = ({ orm }: WebhookDependencies) =>
  route({
    method: 'delete',
    path: '/webhook-endpoint',
    summary: 'Send no more events; they can still be read',
    query: z.strictObject({}),
    responses: { 204: z.null() },
    errors: ['webhook_endpoint_not_found'],
    async handle({ caller }) {
      if (!(await removeEndpoint(orm, caller))) throw new ApiError('webhook_endpoint_not_found');
      return { status: 204, body: null };
    },
  });

export const rotateWebhookSecret = ({ orm, ring }: WebhookDependencies) =>
  route({
    method: 'post',
    path: '/webhook-endpoint/rotate-secret',
    summary: 'Replace the secret',
    description:
      'The answer has the new secret, which signs from now on and is not shown again. Until ' +
      '`previous_secret_expires_at`, 24 hours, the one before signs beside it in the Standard Webhooks header.',
    query: z.strictObject({}),
    responses: { 200: WebhookEndpointResource },
    errors: ['webhook_endpoint_not_found'],
    async handle({ caller: { partnerId, mode } }) {
      const { endpoints, secret } = await rotateEndpointSecret({ orm, ring }, partnerId, [mode]);
      return { status: 200, body: presentWebhookEndpoint(existing(endpoints[0]), secret) };
    },
  });

export const testWebhookEndpoint = ({ orm, eventsWritten }: WebhookDependencies) =>
  route({
    method: 'post',
    path: '/webhook-endpoint/test',
    summary: 'Send a ping event',
    description: 'The event of type `ping` is delivered, retried and listed like any other.',
    query: z.strictObject({}),
    responses: { 202: EventResource },
    errors: ['webhook_endpoint_not_found', 'invalid_state'],
    async handle({ caller }) {
      const eventId = await sendPing(orm, caller);
      eventsWritten();
      return { status: 202, body: await readEvent(orm, caller, eventId) };
    },
  });

function existing(row: WebhookEndpointRow | undefined): WebhookEndpointRow {
  if (row === undefined) throw new ApiError('webhook_endpoint_not_found');
  return row;
}
