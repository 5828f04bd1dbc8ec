import { createHmac, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Mode } from '../../domain/mode.ts';
import type { KeyRing } from './key-ring.ts';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const RANDOM_LENGTH = 36;
const CHECKSUM_LENGTH = 6;
const PREFIX_LENGTH = 12;
const SHAPE = /^sk_(test|live)_[0-9A-Za-z]{42}$/;

/** `sk_<mode>_`, 36 random characters (214 bits) and a checksum of 6. */
export function generateApiKey(mode: Mode): string {
  const random = Array.from({ length: RANDOM_LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]).join('');
  const body = `sk_${mode}_${random}`;
  return body + checksum(body);
}

/** Whether a text could be a key, apart from its checksum. */
export function isApiKeyShaped(text: string): boolean {
  return SHAPE.test(text);
}

/** The mode of a well-formed key; undefined for a mistyped or foreign one, so that it costs no query. */
export function readApiKeyMode(key: string): Mode | undefined {
  const shape = SHAPE.exec(key);
  if (shape === null) return undefined;
  if (checksum(key.slice(0, -CHECKSUM_LENGTH)) !== key.slice(-CHECKSUM_LENGTH)) return undefined;
  return shape[1] as Mode;
}

/**
 * The part of a key that people can recognise it by: its prefix and last four characters, which belong to the
 * checksum.
 */
export function apiKeyHint(key: string): string {
  return `${key.slice(0, 8)}…${key.slice(-4)}`;
}

/** The first part of a key, as partners see it: 24 of its 214 random bits. */
export const apiKeyPrefix = (key: string): string => key.slice(0, PREFIX_LENGTH);

/**
 * Returns the hashes that an API key may be stored under, the ring's current key first, so that API keys
 * survive a rotation.
 */
export function apiKeyHasher(ring: KeyRing): (key: string) => Buffer[] {
  const secrets = ring.derive('api-key-hash');
  return (key) => secrets.map((secret) => createHmac('sha256', secret).update(key).digest());
}

function checksum(body: string): string {
  let rest = crc32(body);
  let text = '';
  for (let i = 0; i < CHECKSUM_LENGTH; i++) {
    text = ALPHABET[rest % ALPHABET.length] + text;
    rest = Math.floor(rest / ALPHABET.length);
  }
  return text;
}
