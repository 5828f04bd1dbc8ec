import type { NarrowedKey } from '../../accounts/own-keys.ts';
import type { RouteInput } from './route.ts';

/** The key that asks, with its request, for the audit log. */
export function askingKey({
  caller,
  requestId,
  clientAddress,
}: Pick<RouteInput, 'caller' | 'requestId' | 'clientAddress'>): NarrowedKey {
  const { partnerId, mode, keyId, scopes } = caller;
  return { partnerId, mode, keyId, scopes, requestId, clientAddress };
}
