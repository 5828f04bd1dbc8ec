import { createHmac, timingSafeEqual } from 'node:crypto';
import type { NetworkPost } from './card-network.ts';

export const STANDARD_SIGNATURE_HEADER = 'webhook-signature';

/** How far the sender's clock may be from ours, either way. */
const MAX_SKEW_MS = 300_000;

/**
 * `v1,` and the base64 of the HMAC-SHA256 over id, timestamp and raw body (standardwebhooks.com, version 1).
 */
export function signStandardWebhook(
  { id, timestamp }: { id: string; timestamp: string },
  body: string | Uint8Array,
  key: Buffer,
): string {
  const hmac = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body);
  return `v1,${hmac.digest('base64')}`;
}

/**
 * Whether one of the post's signatures is valid under one of the keys, and its timestamp is now. There may be
 * several signatures, such as after a rotation. All are compared, each in constant time.
 */
export function verifyStandardWebhook({ body, headers }: NetworkPost, keys: readonly Buffer[]): boolean {
  const id = headers['webhook-id']?.toString() ?? '';
  const timestamp = headers['webhook-timestamp']?.toString() ?? '';
  const signatures = (headers[STANDARD_SIGNATURE_HEADER]?.toString() ?? '').split(' ').slice(0, 10);
  if (id === '' || !/^\d{1,12}$/.test(timestamp)) return false;
  if (Math.abs(Date.now() - Number(timestamp) * 1_000) > MAX_SKEW_MS) return false;
  let isValid = false;
  for (const key of keys) {
    const expected = Buffer.from(signStandardWebhook({ id, timestamp }, body, key));
    for (const signature of signatures) {
      const received = Buffer.from(signature);
      if (received.length === expected.length && timingSafeEqual(received, expected)) isValid = true;
    }
  }
  return isValid;
}
