import { createHash } from 'node:crypto';
import type { ClaimOperation } from '../../domain/claim-operation.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import {
  type Claim,
  claimIdempotencyKey,
  type FoundResponse,
  type KeyedRequest,
  newResourceId,
} from '../../requests/claim.ts';
import type { CommandContext } from '../../requests/command-context.ts';
import type { KeyedResponse } from '../../requests/respond-once.ts';
import { type StoredResponse, sealRequest } from '../../requests/response.ts';
import { operationId } from '../../requests/rules.ts';
import { LEASE_MS } from './claimed-work.ts';
import type { Method, RouteInput, StoredReply } from './route.ts';

/**
 * The claim of a request's Idempotency-Key. @param cardId the card the request is about, if it exists already
 */
export function keyedRequest<Operation extends ClaimOperation>(
  operation: Operation,
  { caller, method, path, body, idempotencyKey, requestId, clientAddress }: RouteInput,
  cardId: string | null,
): KeyedRequest<Operation> {
  return {
    claimId: newId('claim'),
    partnerId: caller.partnerId,
    mode: caller.mode,
    key: idempotencyKey === '' ? null : idempotencyKey,
    operation,
    resourceId: newResourceId(operation),
    cardId,
    fingerprint: fingerprintRequest(method, path, body),
    requestId,
    apiKeyId: caller.keyId,
    clientAddress,
  };
}

/**
 * Claims the Idempotency-Key of a request whose work is a workflow.
 * @param body what the workflow needs from the body; null if the claim's other columns have it all
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
 * The reply to a request that was one transaction, which stored its response as it committed.
 * @param eventsWritten called if the transaction may have written an event
 */
export function replyOnce(
  { replayed, response, claimId }: KeyedResponse,
  eventsWritten?: () => void,
): StoredReply {
  if (replayed && claimId !== undefined) return replay({ claimId, response });
  eventsWritten?.();
  return claimId === undefined ? response : replyAs(claimId, response);
}

/** The stored response of a finished request, byte for byte (docs/partners/idempotency.md). */
export function replay({ claimId, response }: FoundResponse): StoredReply {
  const headers = { 'Operation-Id': operationId(claimId), 'Idempotent-Replayed': 'true' };
  return { ...response, headers };
}

/**
 * The response to a request with a key, which names its operation. A 400 is not kept, so there is none to
 * name.
 */
export function replyAs(claimId: string, response: StoredResponse): StoredReply {
  if (response.status === 400) return response;
  return { ...response, headers: { 'Operation-Id': operationId(claimId) } };
}

/**
 * What makes two requests the same (docs/partners/idempotency.md): method, path and the parsed body. A
 * validated body has its fields in the schema's order, whatever order they came in.
 */
export function fingerprintRequest(method: Method, path: string, body: unknown): Buffer {
  return createHash('sha256')
    .update(`${method.toUpperCase()} ${path}\n${JSON.stringify(body)}`)
    .digest();
}
