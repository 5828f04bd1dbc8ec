import { sql } from 'kysely';
import type { KeyRing } from '../../crypto/key-ring.ts';
import type { Orm } from '../../db/orm.ts';
import {
  ASYNCHRONOUS_COMMIT,
  autocommitStatement,
  type Transactor,
  tenantStatement,
  writeStatement,
} from '../../db/sql.ts';
import { ApiError } from '../../domain/api-error.ts';
import type { ClaimOperation } from '../../domain/claim-operation.ts';
import type { Tenant } from '../../domain/mode.ts';
import type { CommandContext } from '../command-context.ts';
import { openBody, type StoredResponse } from './response.ts';

/** A request that came with an Idempotency-Key, or could have. */
export interface KeyedRequest extends Tenant {
  /** The id the claim gets if the key is new. */
  claimId: string;
  /** Null if the request brought none. */
  key: string | null;
  operation: ClaimOperation;
  /** The card it is about, if there is one already. */
  cardId: string | null;
  /** SHA-256 of method, path and parsed body. */
  fingerprint: Buffer;
  requestId: string;
}

export interface ClaimRequest extends KeyedRequest {
  /** What the operation needs to go on without the caller, sealed; null if it needs no more than is here. */
  sealedRequest: Buffer | null;
  leaseMs: number;
}

/**
 * `claimed`: the operation is the caller's to run, under `claimId`; that is an earlier request's id if that
 * request's process seems to have died. `replay`: it has a response.
 */
export type Claim = { outcome: 'claimed'; claimId: string } | { outcome: 'replay'; response: StoredResponse };

/**
 * Takes an Idempotency-Key for one request whose work a workflow does (decisions.md, "Idempotency"), in a transaction of
 * its own. One statement if the key is new.
 * @throws ApiError `idempotency_in_flight` while another request runs under the key, `idempotency_conflict` if it
 * was used for another request.
 */
export async function claimIdempotencyKey(
  { orm, ring }: CommandContext,
  request: ClaimRequest,
): Promise<Claim> {
  const [claimed] = await insertOrTakeOver(orm, request);
  if (claimed !== undefined) return { outcome: 'claimed', claimId: claimed.id };
  const [found] = await claimUnderKey(orm.em.fork(), request, { key: request.key });
  const response = found && storedResponseOf(ring, request, found);
  if (!response) throw new ApiError('idempotency_in_flight');
  return { outcome: 'replay', response };
}

// The claim need not be on the disk: whatever is done under it commits later and takes it along, and a claim that a crash
// of PostgreSQL forgot had nothing done under it.
const insertOrTakeOver = autocommitStatement(
  (_, claim: ClaimRequest) => sql<{ id: string }>`
    WITH ${ASYNCHRONOUS_COMMIT} INSERT INTO idempotency_claim AS c
      (id, partner_id, mode, key, operation, card_id, fingerprint, request, request_id, lease_expires_at)
    SELECT ${claim.claimId}, ${claim.partnerId}, ${claim.mode}, ${claim.key}, ${claim.operation}, ${claim.cardId},
      ${claim.fingerprint}::bytea, ${claim.sealedRequest}::bytea, ${claim.requestId},
      now() + ${claim.leaseMs} * interval '1 millisecond'
    FROM asynchronous_commit
    ON CONFLICT (partner_id, mode, key) DO UPDATE SET lease_expires_at = excluded.lease_expires_at
      WHERE c.response_status IS NULL AND c.fingerprint = excluded.fingerprint AND c.lease_expires_at < now()
    RETURNING c.id`,
);

/** What lies under a key: the claim's columns, NULL if there is none. */
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
 * The response that lies under a request's key; null if there is no claim.
 * @throws ApiError `idempotency_conflict`, `idempotency_in_flight` if the claim has no response
 */
export function storedResponseOf(
  ring: KeyRing,
  request: KeyedRequest,
  { claim_id: claimId, fingerprint, response_status: status, response_body: body }: FoundClaim,
): StoredResponse | null {
  if (claimId === null) return null;
  if (!fingerprint?.equals(request.fingerprint)) throw new ApiError('idempotency_conflict');
  if (status === null || body === null) throw new ApiError('idempotency_in_flight');
  return { status, body: openBody(ring, claimId, body) };
}

/** A sign of life: the process that runs the claim's request still does. @returns false if the claim has a response */
export async function renewLease(orm: Orm, claimId: string, leaseMs: number): Promise<boolean> {
  return (await renew(orm, { claimId, leaseMs })).length > 0;
}

const renew = autocommitStatement(
  (_, { claimId, leaseMs }: { claimId: string; leaseMs: number }) => sql`
    UPDATE idempotency_claim SET lease_expires_at = now() + ${leaseMs} * interval '1 millisecond'
    WHERE id = ${claimId} AND response_status IS NULL
    RETURNING id`,
);

/** Gives a key free again whose request turned out not to be valid. Any other response stays. */
export async function forgetClaim(orm: Orm, claimId: string): Promise<void> {
  await forget(orm, { claimId });
}

const forget = autocommitStatement((db, { claimId }: { claimId: string }) =>
  db.deleteFrom('idempotency_claim').where('id', '=', claimId).where('response_status', '=', 400),
);

/**
 * Deletes a claim of test mode that has no response: a process of an earlier release left it, and nothing has been done
 * under it.
 */
export async function forgetUnanswered(orm: Orm, { partnerId, key }: KeyedRequest): Promise<void> {
  await forgetLeft(orm, { partnerId, key });
}

const forgetLeft = autocommitStatement((db, { partnerId, key }: { partnerId: string; key: string | null }) =>
  db
    .deleteFrom('idempotency_claim')
    .where('partner_id', '=', partnerId)
    .where('mode', '=', 'test')
    .where('key', '=', key)
    .where('response_status', 'is', null),
);

/** Whether a claim that the transaction holds has a response. */
interface LockedClaim {
  answered: boolean;
}

/** Locks a claim; null if there is none any more. Comes before every other lock but that of the account's usage. */
export async function lockClaim(tx: Transactor, claimId: string): Promise<LockedClaim | null> {
  const [claim] = await lock(tx, { claimId });
  return claim ?? null;
}

/**
 * Locks the account's usage row, which puts the account's fundings in one order, and then the claim, so that one run of
 * it decides at a time.
 * @returns null if there is no such claim any more: its request was not valid, and it was forgotten.
 */
export async function lockUsageAndClaim(tx: Transactor, claimId: string): Promise<LockedClaim | null> {
  const [claim] = await lockBoth(tx, { claimId });
  return claim ?? null;
}

const lock = writeStatement((db, { claimId }: { claimId: string }) =>
  db
    .selectFrom('idempotency_claim')
    .select(({ eb }) => eb('response_status', 'is not', null).$castTo<boolean>().as('answered'))
    .where('id', '=', claimId)
    .forNoKeyUpdate(),
);

const lockBoth = writeStatement((db, { claimId }: { claimId: string }) =>
  db
    .selectFrom('account_usage as u')
    .innerJoin('idempotency_claim as c', (join) =>
      join.onRef('c.partner_id', '=', 'u.partner_id').onRef('c.mode', '=', 'u.mode'),
    )
    .select(({ eb }) => eb('c.response_status', 'is not', null).$castTo<boolean>().as('answered'))
    .where('c.id', '=', claimId)
    .forNoKeyUpdate(),
);
