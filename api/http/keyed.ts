import { createHash } from 'node:crypto';
import type { CommandContext } from '../../commands/command-context.ts';
import type { KeyedAnswer } from '../../commands/idempotency/answer-once.ts';
import {
  type Claim,
  claimIdempotencyKey,
  type KeyedRequest,
  newResourceId,
} from '../../commands/idempotency/claim.ts';
import { type StoredResponse, sealRequest } from '../../commands/idempotency/response.ts';
import { newId } from '../../crypto/new-id.ts';
import type { ClaimOperation } from '../../domain/claim-operation.ts';
import { LEASE_MS } from './claimed-work.ts';
import type { RouteInput, StoredReply } from './route.ts';

/** A POST with what claims its Idempotency-Key. @param cardId the card it is about, if there is one already */
export function keyedRequest<Operation extends ClaimOperation>(
  operation: Operation,
  { caller, path, body, idempotencyKey, requestId }: RouteInput,
  cardId: string | null,
): KeyedRequest<Operation> {
  return {
    ...{
      claimId: newId('claim'),
      partnerId: caller.partnerId,
      mode: caller.mode,
      operation,
      resourceId: newResourceId(operation),
      cardId,
      requestId,
    },
    key: idempotencyKey === '' ? null : idempotencyKey,
    fingerprint: fingerprintOf('POST', path, body),
  };
}

/**
 * Claims the Idempotency-Key of a POST whose work is a workflow.
 * @param body what the workflow needs of it; null if the claim has that already
 * @throws ApiError `idempotency_in_flight`, `idempotency_conflict`
 */
export function claimOperation<Operation extends ClaimOperation>(
  { orm, ring }: CommandContext,
  request: KeyedRequest<Operation>,
  body: unknown,
): Promise<Claim<Operation>> {
  const sealedRequest = body === null ? null : sealRequest(ring, request.claimId, body);
  return claimIdempotencyKey({ orm, ring }, { ...request, sealedRequest, leaseMs: LEASE_MS });
}

/**
 * The reply to a request that is one transaction, which commits together with its response.
 * @param eventsWritten called if the transaction may have written one
 */
export function replyOnce({ replayed, response }: KeyedAnswer, eventsWritten?: () => void): StoredReply {
  if (replayed) return replay(response);
  eventsWritten?.();
  return response;
}

/** A finished request's response again, byte for byte (decisions.md, "Idempotency"). */
export function replay(response: StoredResponse): StoredReply {
  return { ...response, headers: { 'Idempotent-Replayed': 'true' } };
}

/**
 * What makes two requests the same (decisions.md, "Idempotency"): method, path and the parsed body. A validated body has
 * its fields in the schema's order, whatever order they came in.
 */
export function fingerprintOf(method: string, path: string, body: unknown): Buffer {
  return createHash('sha256')
    .update(`${method} ${path}\n${JSON.stringify(body)}`)
    .digest();
}
