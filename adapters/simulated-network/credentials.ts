import { createSecretKey, hkdfSync, type KeyObject } from 'node:crypto';

export interface SimulatedNetworkCredentials {
  /** What a client of its HTTP API has to show. */
  bearerToken: string;
  /** What its callbacks are signed with. */
  callbackSecret: string;
}

/**
 * What the simulated network and those who talk to it share, from one secret of 32 bytes. Whoever has the same secret
 * comes to the same credentials, so the hosts, their clients and the receiver of callbacks need to exchange nothing.
 */
export function simulatedNetworkCredentials(secret: KeyObject): SimulatedNetworkCredentials {
  return {
    bearerToken: subkey(secret, 'bearer token').toString('hex'),
    callbackSecret: subkey(secret, 'callback secret').toString('hex'),
  };
}

/** The key its cards are derived from, known to nobody but the network. */
export function simulatedCardKey(secret: KeyObject): KeyObject {
  return createSecretKey(subkey(secret, 'card key'));
}

function subkey(secret: KeyObject, purpose: string): Buffer {
  if (secret.symmetricKeySize !== 32)
    throw new Error('the secret of the simulated network must have 32 bytes');
  return Buffer.from(hkdfSync('sha256', secret, '', `simulated network: ${purpose}`, 32));
}
