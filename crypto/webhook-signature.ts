import { createHmac, hash } from 'node:crypto';
import { webhookSecretBytes } from './webhook-secret.ts';

export interface EventToSign {
  eventId: string;
  /** The exact text of the event's row; it travels as UTF-8. */
  body: string;
  /** The current secret, then the one before it while it has not expired. */
  secrets: readonly [current: string, previous?: string];
  /** Whether the endpoint asked for the headers of Standard Webhooks too. */
  standardWebhooks: boolean;
  /** The attempt's own time, milliseconds since the epoch. */
  nowMs: number;
}

/**
 * The headers that make one attempt verifiable. `X-Service-Signature` has room for one digest (partner-api.md,
 * "Signature"), so it is always the current secret's; `webhook-signature` lists one for each secret
 * (standardwebhooks.com, version 1).
 */
export function signEvent(event: EventToSign): Record<string, string> {
  const { eventId, body, secrets, nowMs } = event;
  const headers = {
    'X-Service-Event-Id': eventId,
    'X-Service-Timestamp': String(nowMs),
    'X-Service-Signature': hash('sha256', `${nowMs}${body}${secrets[0]}`, 'hex'),
  };
  if (!event.standardWebhooks) return headers;
  const timestamp = Math.floor(nowMs / 1_000);
  const signatures = secrets.flatMap((secret) =>
    secret === undefined ? [] : `v1,${hmac(secret, `${eventId}.${timestamp}.${body}`)}`,
  );
  return {
    ...headers,
    'webhook-id': eventId,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signatures.join(' '),
  };
}

function hmac(secret: string, text: string): string {
  return createHmac('sha256', webhookSecretBytes(secret)).update(text).digest('base64');
}
