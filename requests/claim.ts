import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { ApiError } from '../domain/api-error.ts';
import { CLAIM_OPERATIONS, type ClaimOperation, type MakingOperation } from '../domain/claim-operation.ts';
import type { Tenant } from '../domain/mode.ts';
import type { KeyRing } from '../platform/crypto/key-ring.ts';
import { newId } from '../platform/crypto/new-id.ts';
import type { Row } from '../platform/db/entities.ts';
import { hasPassed } from '../platform/db/has-passed.ts';
import type { Orm } from '../platform/db/orm.ts';
import {
  ASYNCHRONOUS_COMMIT,
  autocommitStatement,
  type Transactor,
  tenantStatement,
  writeStatement,
} from '../platform/db/sql.ts';
import type { CommandContext } from './command-context.ts';
import { openBody, type StoredResponse } from './response.ts';
import { operationId } from './rules.ts';

/** The id of what an operation makes; null if it has none yet. */
type ResourceIdOf<Operation extends ClaimOperation> = Operation extends MakingOperation ? string : null;

/**
 * The id is chosen before the key is claimed, and stored in the claim, so that every run of the claim creates
 * the same resource.
 */
export function newResourceId<Operation extends ClaimOperation>(
  operation: Operation,
): ResourceIdOf<Operation> {
  const { makes } = CLAIM_OPERATIONS[operation];
  return (makes === null || makes === 'in_response' ? null : newId(makes)) as ResourceIdOf<Operation>;
}

/** A request to an endpoint that takes an Idempotency-Key. */
export interface KeyedRequest<Operation extends ClaimOperation = ClaimOperation> extends Tenant {
  /** The id the claim gets if the key is new. */
  claimId: string;
  /** Null if the request had none. */
  key: string | null;
  operation: Operation;
  /** The id of what it creates if the key is new; null if it creates nothing. */
  resourceId: ResourceIdOf<Operation>;
  /** The card it is about, if it exists already. */
  cardId: string | null;
  /** SHA-256 of method, path and parsed body. */
  fingerprint: Buffer;
  requestId: string;
  /** The API key that sent it, and from where; null if no partner did. */
  apiKeyId: string | null;
  clientAddress: string | null;
}

export interface ClaimRequest<Operation extends ClaimOperation = ClaimOperation>
  extends KeyedRequest<Operation> {
  /** What the operation needs to continue without the caller, sealed; null if the other fields are enough. */
  sealedRequest: Buffer | null;
  leaseMs: number;
}

/**
 * `claimed`: the caller has to run the operation under `claimId`, which creates `resourceId`. Both are an
 * earlier request's if that request's process seems to have died. `replay`: there is a response already.
 */
export type Claim<Operation extends ClaimOperation = ClaimOperation> =
  | { outcome: 'claimed'; claimId: string; resourceId: ResourceIdOf<Operation> }
  | { outcome: 'replay'; claimId: string; response: StoredResponse };

/** Whether nobody works on the claim `c`. */
export const IS_LEASE_OVER = hasPassed('c.lease_expires_at', 3_600_000);

/** How often a request looks whether the 400 of another one under its key has been deleted. */
const INVALID_POLL_MS = 20;

/**
 * Claims an Idempotency-Key for a request whose work is done by a workflow
 * (docs/decisions/claims-hold-request-and-answer.md), in a separate transaction. It takes one statement if
 * the key is new. If the key has a 400, it waits until the key is free, as long as a lease at most.
 * @throws ApiError `idempotency_in_flight` while another request runs under the key, `idempotency_conflict`
 * if it was used for another request.
 */
export async function claimIdempotencyKey<Operation extends ClaimOperation>(
  { orm, ring }: CommandContext,
  request: ClaimRequest<Operation>,
): Promise<Claim<Operation>> {
  for (;;) {
    const [claimed] = await insertOrTakeOver(orm, request);
    if (claimed !== undefined) {
      // It is the same operation as this request's, because the fingerprint includes the path.
      const resourceId = claimed.resource_id as ResourceIdOf<Operation>;
      return { outcome: 'claimed', claimId: claimed.id, resourceId };
    }
    const [found] = await claimUnderKey(orm.em.fork(), request, { key: request.key });
    if (found !== undefined && !isInvalid(found)) {
      const stored = openStoredResponse(ring, request, found);
      if (stored !== null) return { outcome: 'replay', ...stored };
    }
    if (!(await forgetInvalid(orm, request))) await sleep(INVALID_POLL_MS);
  }
}

// The claim does not have to be on disk yet: the first commit under it flushes it too, so if a crash of
// PostgreSQL loses it, nothing was done under it.
const insertOrTakeOver = autocommitStatement(
  (_, claim: ClaimRequest) => sql<Row<'idempotency_claim', 'id' | 'resource_id'>>`
    WITH ${ASYNCHRONOUS_COMMIT} INSERT INTO idempotency_claim AS c
      (id, partner_id, mode, key, operation, resource_id, card_id, fingerprint, request,
        request_id, api_key_id,
       client_address, lease_expires_at)
    SELECT ${claim.claimId}, ${claim.partnerId}, ${claim.mode}, ${claim.key},
      ${claim.operation}, ${claim.resourceId},
      ${claim.cardId}, ${claim.fingerprint}::bytea, ${claim.sealedRequest}::bytea, ${claim.requestId},
      ${claim.apiKeyId}, ${claim.clientAddress}, now() + ${claim.leaseMs} * interval '1 millisecond'
    FROM asynchronous_commit
    ON CONFLICT (partner_id, mode, key) DO UPDATE SET lease_expires_at = excluded.lease_expires_at
      WHERE c.response_status IS NULL AND c.fingerprint = excluded.fingerprint AND ${IS_LEASE_OVER}
    RETURNING c.id, c.resource_id`,
);

/** What is stored under a key: the claim's columns, NULL if there is none. */
export interface FoundClaim {
  claim_id: string | null;
  fingerprint: Buffer | null;
  response_status: number | null;
  response_body: Buffer | null;
}

export const claimUnderKey = tenantStatement(
  (db, { partnerId, mode, key }: Tenant & { key: string | null }) =>
    db
      .selectFrom('idempotency_claim')
      .select(['id as claim_id', 'fingerprint', 'response_status', 'response_body'])
      .where('partner_id', '=', partnerId)
      .where('mode', '=', mode)
      .where('key', '=', key),
);

/**
 * Whether a claim has a 400, which the process that runs its request is about to send, and then deletes the
 * claim: it is no operation, and nothing is stored under the key.
 */
export const isInvalid = ({ response_status: status }: FoundClaim): boolean => status === 400;

/** The response stored under a key, and the claim that it belongs to. */
export interface FoundResponse {
  claimId: string;
  response: StoredResponse;
}

/**
 * The response stored under a request's key, which is not a 400; null if there is no claim.
 * @throws ApiError `idempotency_conflict`; `idempotency_in_flight` if the claim has no response
 */
export function openStoredResponse(
  ring: KeyRing,
  request: KeyedRequest,
  { claim_id: claimId, fingerprint, response_status: status, response_body: body }: FoundClaim,
): FoundResponse | null {
  if (claimId === null) return null;
  const detail = { operationId: operationId(claimId) };
  if (!fingerprint?.equals(request.fingerprint)) throw keyConflict(detail.operationId);
  if (status === null || body === null) throw new ApiError('idempotency_in_flight', detail);
  return { claimId, response: { status, body: openBody(ring, claimId, body) } };
}

/** `idempotency_conflict` with where to look at the operation that the key belongs to. */
function keyConflict(operationId: string): ApiError {
  return new ApiError('idempotency_conflict', {
    operationId,
    message:
      'This Idempotency-Key belongs to an earlier request with another method, path or body, and this request did nothing. ' +
      `First look at what the earlier one did: GET /v1/operations/${operationId}, or send it again exactly as it was with ` +
      'this key to get its response. Use a new key only for a request that you want in addition.',
  });
}

/** Renews the lease of a process that is running the claim's request, until the claim has a response. */
export const renewLease = autocommitStatement(
  (_, { claimId, leaseMs }: { claimId: string; leaseMs: number }) => sql`
    UPDATE idempotency_claim SET lease_expires_at = now() + ${leaseMs} * interval '1 millisecond'
    WHERE id = ${claimId} AND response_status IS NULL`,
  { acrossTenants: 'id' },
);

/** Frees a key whose request turned out to be invalid. Any other response stays. */
export const forgetClaim = autocommitStatement(
  (db, { claimId }: { claimId: string }) =>
    db.deleteFrom('idempotency_claim').where('id', '=', claimId).where('response_status', '=', 400),
  { acrossTenants: 'id' },
);

/**
 * Frees a request's key if it has a 400, which is never replayed, and the process whose request it was has
 * died before it freed the key itself.
 * @returns whether the key is free now
 */
export async function forgetInvalid(orm: Orm, { partnerId, mode, key }: KeyedRequest): Promise<boolean> {
  if (mode === 'test' || key === null) return false;
  return (await forgetLeftInvalid(orm, { partnerId, mode, key })).length > 0;
}

// While the lease lasts, the process may be alive and not have read the response yet.
const forgetLeftInvalid = autocommitStatement((db, { partnerId, mode, key }: Tenant & { key: string }) =>
  db
    .deleteFrom('idempotency_claim as c')
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .where('key', '=', key)
    .where('response_status', '=', 400)
    .where(IS_LEASE_OVER)
    .returning('id'),
);

/** A claim that the transaction holds. */
interface LockedClaim {
  /** Whether it has a response. */
  answered: boolean;
  /** The id of what it creates. */
  resource_id: string | null;
}

/** Locks a claim; null if it is gone. In the order of locks, only the account's usage comes before it. */
export async function lockClaim(tx: Transactor, claimId: string): Promise<LockedClaim | null> {
  const [claim] = await lock(tx, { claimId });
  return claim ?? null;
}

/**
 * Locks the account's usage row, which puts the account's fundings in order, and then the claim, so that only
 * one run of it decides at a time.
 * @returns null if the claim is gone because its request was invalid
 */
export async function lockUsageAndClaim(tx: Transactor, claimId: string): Promise<LockedClaim | null> {
  const [claim] = await lockBoth(tx, { claimId });
  return claim ?? null;
}

const lock = writeStatement(
  (db, { claimId }: { claimId: string }) =>
    db
      .selectFrom('idempotency_claim')
      .select([
        'resource_id',
        (eb) => eb('response_status', 'is not', null).$castTo<boolean>().as('answered'),
      ])
      .where('id', '=', claimId)
      .forNoKeyUpdate(),
  { acrossTenants: 'id' },
);

const lockBoth = writeStatement(
  (db, { claimId }: { claimId: string }) =>
    db
      .selectFrom('account_usage as u')
      .innerJoin('idempotency_claim as c', (join) =>
        join.onRef('c.partner_id', '=', 'u.partner_id').onRef('c.mode', '=', 'u.mode'),
      )
      .select([
        'c.resource_id',
        (eb) => eb('c.response_status', 'is not', null).$castTo<boolean>().as('answered'),
      ])
      .where('c.id', '=', claimId)
      .forNoKeyUpdate(),
  { acrossTenants: 'id' },
);
