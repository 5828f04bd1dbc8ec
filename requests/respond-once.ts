import { setTimeout as sleep } from 'node:timers/promises';
import { type RawBuilder, sql } from 'kysely';
import { ApiError } from '../domain/api-error.ts';
import { CLAIM_OPERATIONS, type ClaimOperation } from '../domain/claim-operation.ts';
import type { KeyRing } from '../platform/crypto/key-ring.ts';
import { autocommitStatement, type Cte, cte, type Transactor, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import {
  claimUnderKey,
  type FoundClaim,
  forgetInvalid,
  isInvalid,
  type KeyedRequest,
  openStoredResponse,
} from './claim.ts';
import type { CommandContext, OpenCommand } from './command-context.ts';
import { presentError } from './error-resource.ts';
import { type StoredResponse, sealBody } from './response.ts';
import { operationId } from './rules.ts';

/** The response to a request with an Idempotency-Key. */
export interface KeyedResponse {
  /** Whether it is a stored response, so that nothing happened this time. */
  replayed: boolean;
  response: StoredResponse;
  /**
   * The claim of the key, the first request's if it is replayed. {@link respondOnce} sets it; without a key,
   * there is none.
   */
  claimId?: string;
}

/** Another claim has the same key: roll back. */
class KeyTaken extends Error {}

const ATTEMPTS = 5;

/**
 * Runs an operation that touches only our database. The operation, the key's claim and the response are one
 * transaction, so a retry finds either nothing or the response, and two requests with one key wait for each
 * other. A refusal that is stored (docs/partners/idempotency.md: 402, 409, 422) leaves nothing else behind.
 * Without a key, nothing is stored.
 * @param work looks the key up once it holds its locks ({@link findReplay}, or lockRequestedCard for a
 * request about a card), and stores its response with the key's claim (respondWithEvent, {@link respondWith},
 * or {@link insertClaimWithResponse} in another statement); cards/update.ts is the model
 * @throws ApiError what is not stored, `idempotency_conflict`; `unavailable` if the key's 400 is not deleted
 * shortly
 */
export async function respondOnce(
  context: CommandContext,
  request: KeyedRequest,
  work: (tx: Transactor) => Promise<KeyedResponse>,
): Promise<KeyedResponse> {
  for (let attempt = 1; ; attempt++) {
    try {
      const responded = await transaction(context.orm, work).catch((error: unknown) =>
        refuse(context, request, error),
      );
      return request.key === null ? responded : { claimId: request.claimId, ...responded };
    } catch (error) {
      if (!(error instanceof KeyTaken)) throw error;
      if (attempt === ATTEMPTS) throw await stillTaken(context, request);
      if (request.mode === 'live') await forgetInvalid(context.orm, request);
      await sleep(Math.random() * attempt * 10);
    }
  }
}

/** Stores a refusal as the key's response. @throws `error` itself if it is not one that is stored */
async function refuse(
  { orm, ring }: CommandContext,
  request: KeyedRequest,
  error: unknown,
): Promise<KeyedResponse> {
  if (!(error instanceof ApiError) || !isStored(error) || request.key === null) throw error;
  const body = JSON.stringify(presentError(error, request.requestId));
  const response = { status: error.status, body };
  const stored = await storeAlone(orm, claimWithResponse(ring, request, response));
  if (stored.length > 0) return { replayed: false, response };
  const [found] = await claimUnderKey(orm.em.fork(), request, { key: request.key });
  const replay = found && readReplay(ring, request, found);
  if (!replay) throw new KeyTaken();
  return replay;
}

/** The error for a key that another request holds, which it names unless that is about to let go, or has. */
async function stillTaken({ orm }: CommandContext, request: KeyedRequest): Promise<ApiError> {
  const [found] = await claimUnderKey(orm.em.fork(), request, { key: request.key });
  if (!found?.claim_id || isInvalid(found)) return new ApiError('unavailable');
  return new ApiError('idempotency_in_flight', { operationId: operationId(found.claim_id) });
}

/** Errors about the key itself are not responses of the operation. */
const isStored = ({ status, code }: ApiError): boolean =>
  [402, 409, 422].includes(status) && !code.startsWith('idempotency_');

/**
 * Looks a request's key up, once its transaction holds its locks: in a statement of its own, because waiting
 * for a lock does not refresh the snapshot of the statement that waited.
 * @returns the stored response; null if there is none, or the request has no key
 * @throws ApiError see {@link readReplay}
 */
export async function findReplay(
  { tx, ring }: OpenCommand,
  request: KeyedRequest,
): Promise<KeyedResponse | null> {
  const [found] = request.key === null ? [] : await claimUnderKey(tx, request, { key: request.key });
  return found === undefined ? null : readReplay(ring, request, found);
}

/**
 * The response stored under a request's key; null if there is none.
 * @throws ApiError `idempotency_conflict`; in live mode, in which a workflow can be at work under the key,
 * `idempotency_in_flight`. KeyTaken, for {@link respondOnce}, if it has a 400
 */
export function readReplay(ring: KeyRing, request: KeyedRequest, found: FoundClaim): KeyedResponse | null {
  if (isInvalid(found)) throw new KeyTaken();
  const stored = openStoredResponse(ring, request, found);
  return stored && { replayed: true, ...stored };
}

/**
 * Stores a request's response, and its claim with it, in the caller's transaction. Without a key, there is
 * nothing to store it under. {@link respondWithEvent} writes the change's event as well.
 */
export async function respondWith(
  { tx, ring }: OpenCommand,
  request: KeyedRequest,
  status: number,
  resource: unknown,
): Promise<KeyedResponse> {
  const response = { status, body: JSON.stringify(resource) };
  if (request.key === null) return { replayed: false, response };
  requireStored((await storeWithin(tx, claimWithResponse(ring, request, response))).length > 0);
  return { replayed: false, response };
}

/**
 * @param isStored whether {@link insertClaimWithResponse} inserted a row
 * @throws KeyTaken, which rolls the transaction back and makes {@link respondOnce} run it again
 */
export function requireStored(isStored: boolean): void {
  if (!isStored) throw new KeyTaken();
}

/** A claim that is inserted together with its response. */
export interface ClaimWithResponse extends Omit<KeyedRequest, 'resourceId' | 'cardId'> {
  resourceId: string | null;
  aboutCardId: string | null;
  responseStatus: number;
  responseBody: Buffer;
}

export function claimWithResponse(
  ring: KeyRing,
  request: KeyedRequest,
  { status, body }: StoredResponse,
): ClaimWithResponse {
  const { claimId, partnerId, mode, key, operation, fingerprint, requestId } = request;
  const resourceId = request.resourceId ?? readMadeId(operation, { status, body });
  const { apiKeyId, clientAddress } = request;
  const responseBody = sealBody(ring, claimId, body);
  return {
    claimId,
    partnerId,
    mode,
    key,
    operation,
    resourceId,
    aboutCardId: request.cardId,
    fingerprint,
    requestId,
    apiKeyId,
    clientAddress,
    responseStatus: status,
    responseBody,
  };
}

/** What was made has its id only now: the transaction or the authorization in the response. */
function readMadeId(operation: ClaimOperation, { status, body }: StoredResponse): string | null {
  if (status >= 400 || CLAIM_OPERATIONS[operation].makes !== 'in_response') return null;
  return (JSON.parse(body) as { id: string }).id;
}

/**
 * Stores a request's response with the claim of its key, if it has one, once the change has a row.
 * @returns `isStored`: false if another request has claimed the key
 */
export function storeKeyed(
  changed: Cte<unknown>,
  claim: ClaimWithResponse,
): { answered: Cte<{ id: string }>; isStored: RawBuilder<boolean> } {
  const answered = cte('answered', insertClaimWithResponse(claim, changed.rows));
  return { answered, isStored: sql`(${claim.key}::text IS NULL OR EXISTS (SELECT FROM ${answered.rows}))` };
}

/**
 * The INSERT of a claim with its response. It returns no row if there is no key, or the key has another claim
 * by now.
 * @param changed has a row if there is something to respond to
 */
export const insertClaimWithResponse = (
  claim: ClaimWithResponse,
  changed: RawBuilder<unknown> = sql`(SELECT) one`,
): RawBuilder<{ id: string }> => sql`
  INSERT INTO idempotency_claim (id, partner_id, mode, key, operation, resource_id, card_id,
    fingerprint, request_id, api_key_id, client_address, response_status, response_body, lease_expires_at)
  SELECT ${claim.claimId}::text, ${claim.partnerId}::text, ${claim.mode}::text, ${claim.key}::text,
    ${claim.operation}::text, ${claim.resourceId}::text, ${claim.aboutCardId}::text,
    ${claim.fingerprint}::bytea, ${claim.requestId}::text,
    ${claim.apiKeyId}::text, ${claim.clientAddress}::text, ${claim.responseStatus}::smallint,
    ${claim.responseBody}::bytea, now()
  FROM ${changed} WHERE ${claim.key}::text IS NOT NULL
  ON CONFLICT (partner_id, mode, key) DO NOTHING
  RETURNING id`;

const storeAlone = autocommitStatement((_, claim: ClaimWithResponse) => insertClaimWithResponse(claim));
const storeWithin = writeStatement((_, claim: ClaimWithResponse) => insertClaimWithResponse(claim));
