import { createSecretKey, hkdfSync, type KeyObject } from 'node:crypto';

interface SimulatedNetworkCredentials {
  /** The token that clients of its HTTP API send. */
  bearerToken: string;
  /** The secret that signs its callbacks. */
  callbackSecret: string;
}

/**
 * Derives what the simulated network and those who talk to it share from one secret of 32 bytes. The hosts, their
 * clients and the receiver of callbacks derive the same credentials, so they need not exchange any.
 */
export function simulatedNetworkCredentials(secret: KeyObject): SimulatedNetworkCredentials {
  return {
    bearerToken: subkey(secret, 'bearer token').toString('hex'),
    callbackSecret: subkey(secret, 'callback secret').toString('hex'),
  };
}

/** The key that its cards are derived from; only the network has it. */
export function simulatedCardKey(secret: KeyObject): KeyObject {
  return createSecretKey(subkey(secret, 'card key'));
}

function subkey(secret: KeyObject, purpose: string): Buffer {
  if (secret.symmetricKeySize !== 32) {
    throw new Error('the secret of the simulated network must have 32 bytes');
  }
  return Buffer.from(hkdfSync('sha256', secret, '', `simulated network: ${purpose}`, 32));
}
