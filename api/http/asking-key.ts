import type { AskingKey } from '../../requests/operator-context.ts';
import type { RouteInput } from './route.ts';

/** The key that asks, with its request, for the audit log. */
export function askingKey({
  caller,
  requestId,
  clientAddress,
}: Pick<RouteInput, 'caller' | 'requestId' | 'clientAddress'>): AskingKey {
  const { partnerId, mode, keyId } = caller;
  return { partnerId, mode, keyId, requestId, clientAddress };
}
