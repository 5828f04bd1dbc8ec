import { createHmac, timingSafeEqual } from 'node:crypto';

export const SIGNATURE_HEADER = 'X-Network-Signature';

/** Lowercase hex HMAC-SHA256 of the raw body. */
export function signBody(rawBody: string | Uint8Array, secret: string): string {
  return createHmac('sha256', secret).update(rawBody).digest('hex');
}

/**
 * Whether the network sent this body, compared in constant time. It needs no timestamp, since replays do no
 * harm: a callback is only a hint to look something up, and a transaction is recognised by the network's id.
 * @param rawBody the bytes as received, before any parsing
 * @param signature the header's value, if it was sent
 */
export function verifySignature(
  rawBody: string | Uint8Array,
  signature: string | undefined,
  secret: string,
): boolean {
  const expected = Buffer.from(signBody(rawBody, secret));
  const received = Buffer.from(signature ?? '');
  return received.length === expected.length && timingSafeEqual(received, expected);
}
