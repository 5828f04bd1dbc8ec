import { type Claim, claimIdempotencyKey } from '../commands/claim-idempotency-key.ts';
import type { CommandContext } from '../commands/command-context.ts';
import { sealRequest } from '../commands/idempotency-response.ts';
import { newId } from '../db/new-id.ts';
import type { WorkflowOperation } from '../domain/claim-operation.ts';
import { fingerprintOf } from './fingerprint.ts';
import type { RouteInput } from './route.ts';
import { LEASE_MS } from './while-leased.ts';

/**
 * Takes the Idempotency-Key of a POST whose work a workflow does from the request's body.
 * @param cardId the card it is about, where there is one already
 * @throws ApiError `idempotency_in_flight`, `idempotency_conflict`
 */
export function claimOperation(
  { orm, ring }: CommandContext,
  operation: WorkflowOperation,
  { caller, path, body, idempotencyKey, requestId }: RouteInput<unknown, unknown>,
  cardId: string | null,
): Promise<Claim> {
  const claimId = newId('claim');
  return claimIdempotencyKey(orm.em.fork(), ring, {
    claimId,
    partnerId: caller.partnerId,
    mode: caller.mode,
    key: idempotencyKey,
    operation,
    cardId,
    fingerprint: fingerprintOf('POST', path, body),
    sealedRequest: sealRequest(ring, claimId, body),
    requestId,
    leaseMs: LEASE_MS,
  });
}
