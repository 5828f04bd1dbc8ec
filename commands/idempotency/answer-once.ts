import { setTimeout as sleep } from 'node:timers/promises';
import { type RawBuilder, sql } from 'kysely';
import type { KeyRing } from '../../crypto/key-ring.ts';
import { autocommitStatement, type Transactor, writeStatement } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import { ApiError } from '../../domain/api-error.ts';
import type { ClaimOperation } from '../../domain/claim-operation.ts';
import type { Mode } from '../../domain/mode.ts';
import { presentError } from '../../resources/error.ts';
import type { CommandContext, OpenCommand } from '../command-context.ts';
import {
  claimUnderKey,
  type FoundClaim,
  forgetInvalid,
  forgetUnanswered,
  type KeyedRequest,
  storedResponseOf,
} from './claim.ts';
import { type StoredResponse, sealBody } from './response.ts';

/** The response to a request with an Idempotency-Key. */
export interface KeyedAnswer {
  /** Whether it is a stored response, so that nothing happened this time. */
  replayed: boolean;
  response: StoredResponse;
}

/** Another claim has the same key: roll back. */
class KeyTaken extends Error {}

const ATTEMPTS = 5;

/**
 * Runs an operation that touches only our database. The operation, the key's claim and the response are one transaction, so
 * a retry finds either nothing or the response, and two requests with one key wait for each other. A refusal that is stored
 * (docs/partners/idempotency.md: 402, 409, 422) leaves nothing else behind. Without a key, nothing is stored.
 * @param work looks the key up once it holds its locks ({@link replayOf}), and stores its response with the key's claim
 * ({@link answerWith}, or {@link insertAnsweredClaim} in another statement)
 * @throws ApiError what is not stored, `idempotency_conflict`
 */
export async function answerOnce(
  context: CommandContext,
  request: KeyedRequest,
  work: (tx: Transactor) => Promise<KeyedAnswer>,
): Promise<KeyedAnswer> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await transaction(context.orm, work).catch((error: unknown) => refuse(context, request, error));
    } catch (error) {
      const isInFlight = error instanceof ApiError && error.code === 'idempotency_in_flight';
      if (isInFlight && attempt < ATTEMPTS && (await forgetInvalid(context.orm, request))) continue;
      if (!(error instanceof KeyTaken)) throw error;
      if (attempt === ATTEMPTS) throw new ApiError('idempotency_in_flight');
      if (request.mode === 'test') await forgetUnanswered(context.orm, request);
      await sleep(Math.random() * attempt * 10);
    }
  }
}

/** Stores a refusal as the key's response. @throws `error` itself if it is not one that is stored */
async function refuse(
  { orm, ring }: CommandContext,
  request: KeyedRequest,
  error: unknown,
): Promise<KeyedAnswer> {
  if (!(error instanceof ApiError) || !isStored(error) || request.key === null) throw error;
  const body = JSON.stringify(presentError(error, request.requestId));
  const response = { status: error.status, body };
  const stored = await storeAlone(orm, answeredClaimOf(ring, request, response));
  if (stored.length > 0) return { replayed: false, response };
  const [found] = await claimUnderKey(orm.em.fork(), request, { key: request.key });
  const replay = found && replayOf(ring, request, found);
  if (!replay) throw new KeyTaken();
  return replay;
}

/** Errors about the key itself are not responses of the operation. */
const isStored = ({ status, code }: ApiError): boolean =>
  [402, 409, 422].includes(status) && !code.startsWith('idempotency_');

/**
 * The response stored under a request's key; null if there is none.
 * @throws ApiError `idempotency_conflict`; in live mode, in which a workflow can be at work under the key,
 * `idempotency_in_flight`
 */
export function replayOf(ring: KeyRing, request: KeyedRequest, found: FoundClaim): KeyedAnswer | null {
  if (request.mode === 'test' && found.response_status === null) return null;
  const response = storedResponseOf(ring, request, found);
  return response && { replayed: true, response };
}

/** Stores a request's response, and its claim with it, in the caller's transaction. */
export async function answerWith(
  { tx, ring }: OpenCommand,
  request: KeyedRequest,
  status: number,
  resource: unknown,
): Promise<KeyedAnswer> {
  const response = { status, body: JSON.stringify(resource) };
  requireStored((await storeWithin(tx, answeredClaimOf(ring, request, response))).length > 0);
  return { replayed: false, response };
}

/**
 * @param isStored whether {@link insertAnsweredClaim} inserted a row
 * @throws KeyTaken, which rolls the transaction back and makes {@link answerOnce} run it again
 */
export function requireStored(isStored: boolean): void {
  if (!isStored) throw new KeyTaken();
}

/** A claim that is inserted together with its response. */
export interface AnsweredClaim {
  claimId: string;
  partnerId: string;
  mode: Mode;
  key: string | null;
  operation: ClaimOperation;
  resourceId: string | null;
  aboutCardId: string | null;
  fingerprint: Buffer;
  requestId: string;
  apiKeyId: string | null;
  clientAddress: string | null;
  responseStatus: number;
  responseBody: Buffer;
}

export function answeredClaimOf(
  ring: KeyRing,
  request: KeyedRequest,
  { status, body }: StoredResponse,
): AnsweredClaim {
  const { claimId, partnerId, mode, key, operation, resourceId, fingerprint, requestId } = request;
  const { apiKeyId, clientAddress } = request;
  const responseBody = sealBody(ring, claimId, body);
  return {
    ...{ claimId, partnerId, mode, key, operation, resourceId, fingerprint, requestId },
    ...{ apiKeyId, clientAddress },
    aboutCardId: request.cardId,
    ...{ responseStatus: status, responseBody },
  };
}

/**
 * The INSERT of a claim with its response. It returns no row if the key has another claim by now.
 * @param from a CTE that has to have a row, or else nothing is inserted
 */
export const insertAnsweredClaim = (claim: AnsweredClaim, from?: 'done'): RawBuilder<{ id: string }> => sql`
  INSERT INTO idempotency_claim (id, partner_id, mode, key, operation, resource_id, card_id, fingerprint, request_id,
    api_key_id, client_address, response_status, response_body, lease_expires_at)
  SELECT ${claim.claimId}::text, ${claim.partnerId}::text, ${claim.mode}::text, ${claim.key}::text,
    ${claim.operation}::text, ${claim.resourceId}::text, ${claim.aboutCardId}::text, ${claim.fingerprint}::bytea, ${claim.requestId}::text,
    ${claim.apiKeyId}::text, ${claim.clientAddress}::text, ${claim.responseStatus}::smallint, ${claim.responseBody}::bytea, now()
  ${from === undefined ? sql`` : sql`FROM ${sql.ref(from)}`}
  ON CONFLICT (partner_id, mode, key) DO NOTHING
  RETURNING id`;

const storeAlone = autocommitStatement((_, claim: AnsweredClaim) => insertAnsweredClaim(claim));
const storeWithin = writeStatement((_, claim: AnsweredClaim) => insertAnsweredClaim(claim));
