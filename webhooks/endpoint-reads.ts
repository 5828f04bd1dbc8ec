import { type ExpressionBuilder, sql } from 'kysely';
import { ApiError } from '../domain/api-error.ts';
import type { Mode, Tenant } from '../domain/mode.ts';
import type { Tables } from '../platform/db/entities.ts';
import { anyOf, type Reader, readStatement } from '../platform/db/sql.ts';
import type { WebhookEndpointRow } from './endpoint-resource.ts';

/** The columns of a WebhookEndpointRow. */
export const shownEndpointColumns = ({ eb, ref }: ExpressionBuilder<Tables, 'webhook_endpoint'>) =>
  [
    'id',
    'partner_id',
    'mode',
    'url',
    'status',
    'disabled_reason',
    'standard_headers',
    'event_types',
    'description',
    'consecutive_failures',
    'failing_since',
    'last_success_at',
    'last_failure_at',
    'last_failure_http_status',
    'last_failure_error',
    'created_at',
    eb
      .case()
      .when('previous_secret_expires_at', '>', sql<string>`account_now(${ref('partner_id')}, ${ref('mode')})`)
      .then(eb.ref('previous_secret_expires_at'))
      .end()
      .as('previous_secret_expires_at'),
  ] as const;

/** An account's endpoints in these modes, test before live, the oldest first, without their secrets. */
export const readEndpoints = readStatement(
  (db, { partnerId, modes }: { partnerId: string; modes: readonly Mode[] }) =>
    db
      .selectFrom('webhook_endpoint')
      .select(shownEndpointColumns)
      .where('partner_id', '=', partnerId)
      .where('mode', '=', anyOf(modes))
      .orderBy('mode', 'desc')
      .orderBy('id'),
);

/** An endpoint of an account; null for its oldest one, which `/webhook-endpoint` acts on. */
export type EndpointId = string | null;

/**
 * @param endpointId null for the oldest one
 * @throws ApiError `webhook_endpoint_not_found`
 */
export async function readEndpoint(
  em: Reader,
  { partnerId, mode }: Tenant,
  endpointId: EndpointId,
): Promise<WebhookEndpointRow> {
  const endpoints = await readEndpoints(em, { partnerId, modes: [mode] });
  const found = endpoints.find(({ id }) => endpointId === null || id === endpointId);
  if (found !== undefined) return found;
  throw endpointNotFound(endpointId);
}

export const endpointNotFound = (endpointId: EndpointId): ApiError =>
  endpointId === null
    ? new ApiError('webhook_endpoint_not_found')
    : new ApiError('webhook_endpoint_not_found', {
        message: "This account has no webhook endpoint with this id in this key's mode.",
      });

export const endpointDisabled = (): ApiError =>
  new ApiError('invalid_state', {
    message:
      'The webhook endpoint is disabled. Enable it with PATCH /webhook-endpoints/{id}, or PUT /webhook-endpoint for the oldest.',
  });

/** Of each mode, the oldest endpoint, or the one with this id. */
export function pickEndpoints(
  endpoints: readonly WebhookEndpointRow[],
  endpointId: EndpointId,
): WebhookEndpointRow[] {
  return endpoints.filter(
    (endpoint, index) =>
      (endpointId === null && endpoints.findIndex(({ mode }) => mode === endpoint.mode) === index) ||
      endpoint.id === endpointId,
  );
}
