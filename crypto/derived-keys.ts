import { createHmac, type KeyObject } from 'node:crypto';
import type { KeyRing } from './key-ring.ts';

const NETWORK = 'simulated-network';

/**
 * The secrets that the simulated network and those who talk to it share, the ring's current one first. What was issued
 * under another key of the ring is known by that one, also when the key has left the ring.
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

/** The key test cards are derived from. Its id is kept with the card, so rotating the ring changes no card. */
export function testCardKey(ring: KeyRing, keyId: string): KeyObject {
  return ring.deriveFrom(keyId, 'test-cards');
}

/** Gives the hashes an API key may be stored under, the ring's current key first: rotating leaves old keys valid. */
export function apiKeyHasher(ring: KeyRing): (key: string) => Buffer[] {
  const secrets = ring.derive('api-key-hash');
  return (key) => secrets.map((secret) => createHmac('sha256', secret).update(key).digest());
}
