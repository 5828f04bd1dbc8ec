import { createHmac, randomBytes } from 'node:crypto';
import type { KeyRing } from './key-ring.ts';

/** What a token opens. The hash of one is never that of another. */
export type TokenPurpose = 'workbench-link' | 'workbench-test' | 'workbench-live' | 'reveal-link';

/** 256 random bits as 43 letters, digits, `-` and `_`, for a link's fragment or a cookie. */
export const newToken = (): string => randomBytes(32).toString('base64url');

/** Whether a text could be a token, so that anything else costs no query. */
export const isTokenShaped = (text: string): boolean => /^[\w-]{43}$/.test(text);

/**
 * The hashes that a token may be stored under, the ring's current key first, so that tokens survive a
 * rotation.
 */
export const tokenHashes = (ring: KeyRing, purpose: TokenPurpose, token: string): [Buffer, ...Buffer[]] => {
  const [current, ...others] = ring
    .derive(purpose)
    .map((secret) => createHmac('sha256', secret).update(token).digest());
  if (current === undefined) throw new Error('a key ring is never empty');
  return [current, ...others];
};
