import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { WebhookVerificationError } from './errors.ts';
import type { WebhookEvent } from './generated/types.gen.ts';

/** Headers as in Node, Express and Koa (`request.headers`) or fetch (`Headers`). */
export type WebhookHeaders = Headers | Record<string, string | string[] | undefined>;

export interface VerifyOptions {
  /** How far a webhook's timestamp may be from your clock. Default: five minutes. */
  toleranceMs?: number;
  /** Your clock, in milliseconds since the epoch. */
  nowMs?: number;
}

export const webhooks = { verify };

/**
 * Checks that we sent a webhook recently, and parses it. Either of its signatures will do:
 * `X-Service-Signature`, or that of Standard Webhooks. An event can arrive twice: store the `id` of each one
 * you have handled.
 * @param rawBody the body's bytes as they arrived, before any parsing
 * @param secret including `whsec_`; pass both the old and the new one while you rotate it
 * @throws {WebhookVerificationError}
 */
function verify(
  rawBody: string | Uint8Array,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  { toleranceMs = 5 * 60_000, nowMs = Date.now() }: VerifyOptions = {},
): WebhookEvent {
  if (typeof rawBody !== 'string' && !(rawBody instanceof Uint8Array))
    throw new TypeError('rawBody must be the bytes as they arrived: read them before the body is parsed');
  const secrets = typeof secret === 'string' ? [secret] : secret;
  if (secrets.length === 0 || !secrets.every((one) => /^whsec_\S{24,}$/.test(one)))
    throw new TypeError('secret must be the whole webhook secret, including whsec_');
  const found = [serviceSignature(headers, rawBody), standardSignature(headers, rawBody)].filter(
    (one) => one !== null,
  );
  if (found.length === 0)
    throw new WebhookVerificationError(
      'headers_missing',
      'X-Service-Timestamp and X-Service-Signature are missing or malformed, and so are the headers of Standard Webhooks.',
    );
  const genuine = found.find(({ received, expected }) =>
    secrets.some((one) => received.some((signature) => isEqual(signature, expected(one)))),
  );
  if (genuine === undefined)
    throw new WebhookVerificationError(
      'signature_mismatch',
      'The signature matches no secret: check the secret and the raw body.',
    );
  const ageMs = nowMs - genuine.timestampMs;
  if (Math.abs(ageMs) > toleranceMs)
    throw new WebhookVerificationError(
      'timestamp_outside_tolerance',
      `The webhook was sent ${Math.abs(ageMs) / 1_000} s ${ageMs > 0 ? 'before' : 'after'} the time on your clock, and ` +
        `${toleranceMs / 1_000} s are accepted: your clock is wrong, or the webhook was recorded and sent again.`,
    );
  return JSON.parse(typeof rawBody === 'string' ? rawBody : new TextDecoder().decode(rawBody));
}

/** One of a webhook's two kinds of signature. */
interface Signature {
  timestampMs: number;
  /** As sent, one for each secret. */
  received: string[];
  expected(secret: string): string;
}

/**
 * `X-Service-Signature`: hex SHA-256 of timestamp, body and secret. Null if its headers are missing or
 * malformed.
 */
function serviceSignature(headers: WebhookHeaders, rawBody: string | Uint8Array): Signature | null {
  const timestamp = header(headers, 'X-Service-Timestamp');
  const signature = header(headers, 'X-Service-Signature');
  if (!/^[0-9]{1,15}$/.test(timestamp) || signature === '') return null;
  return {
    timestampMs: Number(timestamp),
    received: [signature],
    expected: (secret) => createHash('sha256').update(timestamp).update(rawBody).update(secret).digest('hex'),
  };
}

/** `webhook-signature` of Standard Webhooks, version 1: base64 HMAC-SHA256 of id, timestamp and body. */
function standardSignature(headers: WebhookHeaders, rawBody: string | Uint8Array): Signature | null {
  const id = header(headers, 'webhook-id');
  const timestamp = header(headers, 'webhook-timestamp');
  const signatures = header(headers, 'webhook-signature');
  if (id === '' || !/^[0-9]{1,12}$/.test(timestamp) || signatures === '') return null;
  return {
    timestampMs: Number(timestamp) * 1_000,
    received: signatures.split(' '),
    expected(secret) {
      const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
      const digest = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(rawBody).digest('base64');
      return `v1,${digest}`;
    },
  };
}

function header(headers: WebhookHeaders, name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? '';
  const value = headers[name.toLowerCase()] ?? headers[name];
  return typeof value === 'string' ? value : '';
}

/** In constant time. */
function isEqual(received: string, expected: string): boolean {
  const [one, other] = [Buffer.from(received), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}
