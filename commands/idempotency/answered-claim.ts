import { setTimeout as sleep } from 'node:timers/promises';
import type { EntityManager } from '@mikro-orm/postgresql';
import { type RawBuilder, sql } from 'kysely';
import type { KeyRing } from '../../crypto/key-ring.ts';
import { query, type Transactor } from '../../db/sql.ts';
import { tenantQuery } from '../../db/tenant-query.ts';
import { transaction } from '../../db/transaction.ts';
import { ApiError } from '../../domain/api-error.ts';
import type { ClaimOperation } from '../../domain/claim-operation.ts';
import type { Mode } from '../../domain/mode.ts';
import type { Tenant } from '../../domain/tenant.ts';
import { presentError } from '../../resources/error.ts';
import type { CommandContext } from '../command-context.ts';
import { openBody, type StoredResponse, sealBody } from './idempotency-response.ts';

/** A request that came with an Idempotency-Key, or could have. */
export interface KeyedRequest extends Tenant {
  /** The id the claim gets if the key is new. */
  claimId: string;
  /** Null where the request brought none. */
  key: string | null;
  operation: ClaimOperation;
  /** The card it is about, where there is one already. */
  cardId: string | null;
  /** SHA-256 of method, path and parsed body. */
  fingerprint: Buffer;
  requestId: string;
}

/** The answer to a keyed request. */
export interface KeyedAnswer {
  /** It was given before: nothing happened this time. */
  replayed: boolean;
  response: StoredResponse;
}

/** What lies under a key: the claim's columns, NULL where there is none. */
export interface FoundClaim {
  claim_id: string | null;
  fingerprint: Buffer | null;
  response_status: number | null;
  response_body: Buffer | null;
}

/** There is another claim under the same key: roll back. */
class KeyTaken extends Error {}

const ATTEMPTS = 5;

/**
 * Runs an operation that touches only our database: all of it, the key's claim and the answer are one transaction, so a
 * retry finds either nothing or the answer, and two requests with one key wait for each other. A refusal that is kept
 * (decisions.md, "Idempotency": 402, 409, 422) leaves nothing else behind. A request without a key keeps nothing.
 * @param work looks under the key once it holds its locks ({@link replayOf}), and writes its answer with the key's claim
 * ({@link keepAnswer}, or {@link claimAnswered} within a statement of its own)
 * @throws ApiError what is not kept, `idempotency_conflict`
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
      if (!(error instanceof KeyTaken)) throw error;
      if (attempt === ATTEMPTS) throw new ApiError('idempotency_in_flight');
      if (request.mode === 'test') await forgetUnanswered(context, request);
      await sleep(Math.random() * attempt * 10);
    }
  }
}

/** In test mode a claim without an answer was left by a process of an earlier release: nothing has been done under it. */
async function forgetUnanswered({ orm }: CommandContext, request: KeyedRequest): Promise<void> {
  await tenantQuery(
    orm.em.fork(),
    request,
    'DELETE FROM idempotency_claim WHERE partner_id = $1 AND mode = $2 AND key = $3 AND response_status IS NULL',
    [request.key],
  );
}

/** Keeps a refusal as the answer of its key. @throws `error` itself where it is none that is kept */
async function refuse(
  { orm, ring }: CommandContext,
  request: KeyedRequest,
  error: unknown,
): Promise<KeyedAnswer> {
  if (!(error instanceof ApiError) || !isKept(error) || request.key === null) throw error;
  const em = orm.em.fork();
  const body = JSON.stringify(presentError(error, request.requestId));
  const response = { status: error.status, body };
  const claim = claimAnswered(ring, request, response, 1);
  if ((await query(em, claim.sql, claim.values)).length > 0) return { replayed: false, response };
  const [found] = await tenantQuery<FoundClaim>(
    em,
    request,
    `SELECT id AS claim_id, fingerprint, response_status, response_body FROM idempotency_claim
     WHERE partner_id = $1 AND mode = $2 AND key = $3`,
    [request.key],
  );
  const replay = found && replayOf(ring, request, found);
  if (!replay) throw new KeyTaken();
  return replay;
}

/** What was said of the key itself is no answer of the operation. */
const isKept = ({ status, code }: ApiError): boolean =>
  [402, 409, 422].includes(status) && !code.startsWith('idempotency_');

/**
 * The answer that lies under a request's key; null where there is none.
 * @throws ApiError `idempotency_conflict`; in live mode, where a workflow can be at work under the key, `idempotency_in_flight`
 */
export function replayOf(ring: KeyRing, request: KeyedRequest, found: FoundClaim): KeyedAnswer | null {
  const { claim_id: claimId, fingerprint, response_status: status, response_body: body } = found;
  if (claimId === null || (request.mode === 'test' && status === null)) return null;
  if (!fingerprint?.equals(request.fingerprint)) throw new ApiError('idempotency_conflict');
  if (status === null || body === null) throw new ApiError('idempotency_in_flight');
  return { replayed: true, response: { status, body: openBody(ring, claimId, body) } };
}

/** A claim that is made with its response. */
export interface AnsweredClaim {
  claimId: string;
  partnerId: string;
  mode: Mode;
  key: string | null;
  operation: ClaimOperation;
  aboutCardId: string | null;
  fingerprint: Buffer;
  requestId: string;
  responseStatus: number;
  responseBody: Buffer;
}

export function answeredClaimOf(
  ring: KeyRing,
  request: KeyedRequest,
  { status, body }: StoredResponse,
): AnsweredClaim {
  const { claimId, partnerId, mode, key, operation, cardId: aboutCardId, fingerprint, requestId } = request;
  const responseBody = sealBody(ring, claimId, body);
  return {
    ...{ claimId, partnerId, mode, key, operation, aboutCardId, fingerprint, requestId },
    ...{ responseStatus: status, responseBody },
  };
}

/**
 * The INSERT of a claim with its response; it returns no row if there is another under the key by now.
 * @param from a CTE: without a row of it nothing is inserted
 */
export const insertAnsweredClaim = (claim: AnsweredClaim, from?: 'done'): RawBuilder<{ id: string }> => sql`
  INSERT INTO idempotency_claim (id, partner_id, mode, key, operation, card_id, fingerprint, request_id,
    response_status, response_body, lease_expires_at)
  SELECT ${claim.claimId}::text, ${claim.partnerId}::text, ${claim.mode}::text, ${claim.key}::text,
    ${claim.operation}::text, ${claim.aboutCardId}::text, ${claim.fingerprint}::bytea, ${claim.requestId}::text,
    ${claim.responseStatus}::smallint, ${claim.responseBody}::bytea, now()
  ${from === undefined ? sql`` : sql`FROM ${sql.ref(from)}`}
  ON CONFLICT (partner_id, mode, key) DO NOTHING
  RETURNING id`;

/**
 * The INSERT of a claim with its answer; it returns no row where there is another under the key by now.
 * @param firstParameter the number of the first parameter that is free
 * @param from a CTE: without a row of it nothing is inserted
 */
export function claimAnswered(
  ring: KeyRing,
  request: KeyedRequest,
  { status, body }: StoredResponse,
  firstParameter: number,
  from?: string,
): { sql: string; values: unknown[] } {
  const { claimId, partnerId, mode, key, operation, cardId, fingerprint, requestId } = request;
  const values = [
    ...[claimId, partnerId, mode, key, operation, cardId, fingerprint, requestId],
    ...[status, sealBody(ring, claimId, body)],
  ];
  const types = ['text', 'text', 'text', 'text', 'text', 'text', 'bytea', 'text', 'smallint', 'bytea'];
  const parameters = types.map((type, index) => `$${firstParameter + index}::${type}`);
  const columns =
    'id, partner_id, mode, key, operation, card_id, fingerprint, request_id, response_status, response_body';
  return {
    sql: `INSERT INTO idempotency_claim (${columns}, lease_expires_at)
      SELECT ${parameters.join(', ')}, now()${from === undefined ? '' : ` FROM ${from}`}
      ON CONFLICT (partner_id, mode, key) DO NOTHING
      RETURNING id`,
    values,
  };
}

/** Writes a request's answer, and its claim with it, in the caller's transaction. */
export async function keepAnswer(
  tx: EntityManager,
  ring: KeyRing,
  request: KeyedRequest,
  status: number,
  resource: unknown,
): Promise<KeyedAnswer> {
  const response = { status, body: JSON.stringify(resource) };
  const claim = claimAnswered(ring, request, response, 1);
  requireStored((await query(tx, claim.sql, claim.values)).length > 0);
  return { replayed: false, response };
}

/** @param isStored whether {@link claimAnswered} made a row. @throws KeyTaken to be rolled back with, and run again by {@link answerOnce} */
export function requireStored(isStored: boolean): void {
  if (!isStored) throw new KeyTaken();
}
