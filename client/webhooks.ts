import { createHash, timingSafeEqual } from 'node:crypto';
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
 * Checks that we sent a webhook recently, and parses it. An event can arrive twice: store the `id` of each one you have
 * handled.
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
  if (secrets.length === 0 || !secrets.every((one) => one.startsWith('whsec_')))
    throw new TypeError('secret must be the whole webhook secret, including whsec_');
  const timestamp = header(headers, 'X-Service-Timestamp');
  const signature = header(headers, 'X-Service-Signature');
  if (!/^[0-9]{1,15}$/.test(timestamp) || signature === '')
    throw new WebhookVerificationError(
      'headers_missing',
      'X-Service-Timestamp or X-Service-Signature is missing.',
    );
  if (!secrets.some((one) => isEqual(signature, digest(timestamp, rawBody, one))))
    throw new WebhookVerificationError(
      'signature_mismatch',
      'The signature matches no secret: check the secret and the raw body.',
    );
  if (Math.abs(nowMs - Number(timestamp)) > toleranceMs)
    throw new WebhookVerificationError(
      'timestamp_outside_tolerance',
      'The webhook is too old, or your clock is wrong.',
    );
  return JSON.parse(typeof rawBody === 'string' ? rawBody : new TextDecoder().decode(rawBody));
}

function header(headers: WebhookHeaders, name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? '';
  const value = headers[name.toLowerCase()] ?? headers[name];
  return typeof value === 'string' ? value : '';
}

function digest(timestamp: string, rawBody: string | Uint8Array, secret: string): string {
  return createHash('sha256').update(timestamp).update(rawBody).update(secret).digest('hex');
}

/** In constant time. */
function isEqual(received: string, expected: string): boolean {
  const [one, other] = [Buffer.from(received), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}
