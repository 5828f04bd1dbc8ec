import { createHmac, hash, randomBytes } from 'node:crypto';
import type { KeyRing } from '../platform/crypto/key-ring.ts';

const PREFIX = 'whsec_';
/** Standard Webhooks asks for 24 to 64; a multiple of three needs no padding in base64. */
const RANDOM_BYTES = 30;

/**
 * `whsec_` + 40 characters of base64 (240 random bits), which suits both signatures
 * (docs/decisions/outbound-safety.md).
 */
export function generateWebhookSecret(): string {
  return PREFIX + randomBytes(RANDOM_BYTES).toString('base64');
}

/** Seals a webhook secret for its endpoint's row. It can only be opened for that endpoint. */
export const sealEndpointSecret = (ring: KeyRing, endpointId: string, secret: string): Buffer =>
  ring.seal(secret, endpointSecretContext(endpointId));

/** @throws Error if the secret is another endpoint's */
export const openEndpointSecret = (ring: KeyRing, { id }: { id: string }, sealed: Buffer): string =>
  ring.open(sealed, endpointSecretContext(id));

/** The context that an endpoint's secret is sealed for. */
export const endpointSecretContext = (endpointId: string): string => `webhook-endpoint/${endpointId}`;

/** The context that the start of a receiver's response is sealed for. */
export const answerStartContext = (eventId: string): string => `${eventId}/answer`;

/**
 * Seals the start of a receiver's response for its event, because the receiver may echo the event, including
 * names.
 */
export const sealAnswerStart = (ring: KeyRing, eventId: string, answerStart: string): Buffer =>
  ring.seal(answerStart, answerStartContext(eventId));

export const openAnswerStart = (ring: KeyRing, eventId: string, sealed: Buffer): string =>
  ring.open(sealed, answerStartContext(eventId));

interface EventToSign {
  eventId: string;
  /** The exact text of the event's row, sent as UTF-8. */
  body: string;
  /** The current secret, then the previous one until it expires. */
  secrets: readonly [current: string, previous?: string];
  /** Whether to add the headers of Standard Webhooks. */
  standardWebhooks: boolean;
  /** When the attempt is made, in milliseconds since the epoch. */
  nowMs: number;
}

/**
 * The headers that let a receiver verify one attempt. `X-Service-Signature` is one digest
 * (docs/partners/verifying-webhooks.md), always with the current secret; `webhook-signature` has one
 * signature per secret (standardwebhooks.com, version 1).
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

/** The key is the secret's base64, decoded. */
function hmac(secret: string, text: string): string {
  const key = Buffer.from(secret.slice(PREFIX.length), 'base64');
  return createHmac('sha256', key).update(text).digest('base64');
}
