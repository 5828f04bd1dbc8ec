import { randomBytes } from 'node:crypto';

const PREFIX = 'whsec_';
/** Of 24 to 64 that Standard Webhooks asks for; a multiple of three, so that base64 needs no padding. */
const RANDOM_BYTES = 30;

/** `whsec_` + 40 characters of base64 (240 random bits): good for both signatures (docs/decisions/outbound-safety.md). */
export function generateWebhookSecret(): string {
  return PREFIX + randomBytes(RANDOM_BYTES).toString('base64');
}

/** The key of Standard Webhooks' HMAC: the bytes that the secret's base64 stands for. */
export function webhookSecretBytes(secret: string): Buffer {
  return Buffer.from(secret.slice(PREFIX.length), 'base64');
}
