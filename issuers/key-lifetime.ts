import { readIdTime } from '../platform/crypto/new-id.ts';
import { CardNetworkUnavailable } from './card-network.ts';

// A network forgets idempotency keys, so an old one is not sent again (docs/decisions/card-networks.md).

export interface KeyOptions {
  /** NETWORK_KEY_LIFETIME */
  keyLifetimeMs: number;
  /** Tells how old a key is. */
  nowMs?: () => number;
}

/** Whether the key of our id is not sent any more. */
export const isTooOld = (id: string, { keyLifetimeMs, nowMs = Date.now }: KeyOptions): boolean =>
  nowMs() - readIdTime(id).getTime() > keyLifetimeMs;

/** @throws CardNetworkUnavailable if the key of our id is not sent any more */
export function checkAge(id: string, options: KeyOptions): void {
  if (!isTooOld(id, options)) return;
  throw new CardNetworkUnavailable(
    'card network: the operation is older than NETWORK_KEY_LIFETIME, so that its key is not sent again; it is only looked up',
  );
}
