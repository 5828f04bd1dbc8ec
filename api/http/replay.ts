import type { StoredResponse } from '../../commands/idempotency/response.ts';
import type { StoredReply } from './route.ts';

/** A finished request's answer again, byte for byte (decisions.md, "Idempotency"). */
export function replay(response: StoredResponse): StoredReply {
  return { ...response, headers: { 'Idempotent-Replayed': 'true' } };
}
