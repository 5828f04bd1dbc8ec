import { createHmac, type KeyObject } from 'node:crypto';
import type { KeyRing } from './key-ring.ts';

const NETWORK = 'simulated-network';

/**
 * The secrets that the simulated network shares with its clients, the ring's current one first. Cards issued under another
 * key are recognised by that key, even after it has left the ring.
 */
export function simulatedNetworkSecrets(ring: KeyRing): [current: KeyObject, ...others: KeyObject[]] {
  return ring.derive(NETWORK);
}

/**
 * The secrets under which the network's callbacks are believed: those of the ring's own keys. They move money, so one that
 * has leaked must be worth nothing once its key has left the ring.
 */
export function trustedNetworkSecrets(ring: KeyRing): KeyObject[] {
  return ring.ids.map((id) => ring.deriveFrom(id, NETWORK));
}

/** The key that test cards are derived from. Its id is stored with the card, so rotating the ring changes no card. */
export function testCardKey(ring: KeyRing, keyId: string): KeyObject {
  return ring.deriveFrom(keyId, 'test-cards');
}

/**
 * Returns the hashes that an API key may be stored under, the ring's current key first, so that API keys survive a rotation.
 */
export function apiKeyHasher(ring: KeyRing): (key: string) => Buffer[] {
  const secrets = ring.derive('api-key-hash');
  return (key) => secrets.map((secret) => createHmac('sha256', secret).update(key).digest());
}
