import { createSecretKey, hkdfSync, type KeyObject } from 'node:crypto';
import type { KeyRing } from '../../platform/crypto/key-ring.ts';

const PURPOSE = 'simulated-network';

/**
 * The secrets that the simulated network shares with its clients, the ring's current one first. Cards issued
 * under another key are recognised by that key, even after it has left the ring.
 */
export function simulatedNetworkSecrets(ring: KeyRing): [current: KeyObject, ...others: KeyObject[]] {
  return ring.derive(PURPOSE);
}

/**
 * The secrets under which the network's messages are believed: those of the ring's own keys. They move money,
 * so one that has leaked must be worth nothing once its key has left the ring.
 */
export function trustedNetworkSecrets(ring: KeyRing): KeyObject[] {
  return ring.ids.map((id) => ring.deriveFrom(id, PURPOSE));
}

interface SimulatedNetworkCredentials {
  /** The token that clients send to its HTTP API. */
  bearerToken: string;
  /** The secret that signs its callbacks. */
  callbackSecret: string;
}

/**
 * Derives the credentials of the simulated network from one secret of 32 bytes. The hosts, their clients and
 * the receiver of callbacks all derive the same ones, so they need not exchange any.
 */
export function simulatedNetworkCredentials(secret: KeyObject): SimulatedNetworkCredentials {
  return {
    bearerToken: subkey(secret, 'bearer token').toString('hex'),
    callbackSecret: subkey(secret, 'callback secret').toString('hex'),
  };
}

/** The key that its cards are derived from; only the network uses it. */
export function simulatedCardKey(secret: KeyObject): KeyObject {
  return createSecretKey(subkey(secret, 'card key'));
}

function subkey(secret: KeyObject, purpose: string): Buffer {
  if (secret.symmetricKeySize !== 32) {
    throw new Error('the secret of the simulated network must have 32 bytes');
  }
  return Buffer.from(hkdfSync('sha256', secret, '', `simulated network: ${purpose}`, 32));
}
