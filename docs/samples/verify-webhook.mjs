import { createHash, timingSafeEqual } from 'node:crypto';

const TOLERANCE_MS = 5 * 60 * 1000;

/**
 * Whether a webhook was sent by us, and just now.
 * @param {Buffer} rawBody the bytes as they came; parse them afterwards
 * @param {Record<string, string | undefined>} headers `request.headers` of Node: names in lower case
 * @param {string[]} secrets whole, with `whsec_`; the old and the new one while you change them
 * @throws {TypeError} there is no secret, or it is not whole: without one, anybody could sign
 */
export function verifyWebhook(rawBody, headers, secrets, nowMs = Date.now()) {
  if (secrets.length === 0 || !secrets.every((secret) => /^whsec_\S{24,}$/.test(secret))) {
    throw new TypeError(
      'secrets must be the whole secrets of your webhook endpoint, whsec_…: is a variable not set?',
    );
  }
  const timestamp = headers['x-service-timestamp'] ?? '';
  const received = Buffer.from(headers['x-service-signature'] ?? '');
  if (!/^[0-9]{1,15}$/.test(timestamp)) return false;
  if (Math.abs(nowMs - Number(timestamp)) > TOLERANCE_MS) return false;
  return secrets.some((secret) => {
    const digest = createHash('sha256').update(timestamp).update(rawBody).update(secret).digest('hex');
    const expected = Buffer.from(digest);
    return received.length === expected.length && timingSafeEqual(received, expected);
  });
}
