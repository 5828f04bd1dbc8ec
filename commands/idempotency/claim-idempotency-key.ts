import type { EntityManager } from '@mikro-orm/postgresql';
import type { KeyRing } from '../../crypto/key-ring.ts';
import { query } from '../../db/sql.ts';
import { tenantQuery } from '../../db/tenant-query.ts';
import { UNSAFE_COMMIT } from '../../db/unsafe-commit.ts';
import { ApiError } from '../../domain/api-error.ts';
import type { KeyedRequest } from './answered-claim.ts';
import { openBody, type StoredResponse } from './idempotency-response.ts';

export interface ClaimRequest extends KeyedRequest {
  /** What the operation needs to go on without the caller, sealed; null where it needs no more than is here. */
  sealedRequest: Buffer | null;
  leaseMs: number;
}

/**
 * `claimed`: the operation is the caller's to run, under `claimId`; that is an earlier request's id where that
 * request's process seems to have died. `replay`: it has been answered.
 */
export type Claim = { outcome: 'claimed'; claimId: string } | { outcome: 'replay'; response: StoredResponse };

/**
 * Takes an Idempotency-Key for one request whose work a workflow does (decisions.md, "Idempotency"), in a transaction of
 * its own. One statement where the key is new.
 * @throws ApiError `idempotency_in_flight` while another request runs under the key, `idempotency_conflict` where it
 * was used for another request.
 */
export async function claimIdempotencyKey(
  em: EntityManager,
  ring: KeyRing,
  request: ClaimRequest,
): Promise<Claim> {
  const [claimed] = await query<{ id: string }>(em, CLAIM, [
    request.claimId,
    request.partnerId,
    request.mode,
    request.key,
    request.operation,
    request.cardId,
    request.fingerprint,
    request.sealedRequest,
    request.requestId,
    request.leaseMs,
  ]);
  if (claimed !== undefined) return { outcome: 'claimed', claimId: claimed.id };

  const [existing] = await tenantQuery<ExistingClaim>(
    em,
    request,
    `SELECT id, fingerprint, response_status, response_body FROM idempotency_claim
     WHERE partner_id = $1 AND mode = $2 AND key = $3`,
    [request.key],
  );
  if (existing === undefined) throw new ApiError('idempotency_in_flight');
  if (!existing.fingerprint.equals(request.fingerprint)) throw new ApiError('idempotency_conflict');
  if (existing.response_status === null || existing.response_body === null) {
    throw new ApiError('idempotency_in_flight');
  }
  const body = openBody(ring, existing.id, existing.response_body);
  return { outcome: 'replay', response: { status: existing.response_status, body } };
}

// The claim need not be on the disk: whatever is done under it commits later and takes it along, and a claim that a crash
// of PostgreSQL forgot had nothing done under it.
const CLAIM = `
  WITH ${UNSAFE_COMMIT} INSERT INTO idempotency_claim AS c
    (id, partner_id, mode, key, operation, card_id, fingerprint, request, request_id, lease_expires_at)
  SELECT $1, $2, $3, $4, $5, $6, $7::bytea, $8::bytea, $9, now() + $10 * interval '1 millisecond' FROM unsafe_commit
  ON CONFLICT (partner_id, mode, key) DO UPDATE SET lease_expires_at = excluded.lease_expires_at
    WHERE c.response_status IS NULL AND c.fingerprint = excluded.fingerprint AND c.lease_expires_at < now()
  RETURNING c.id`;

interface ExistingClaim {
  id: string;
  fingerprint: Buffer;
  response_status: number | null;
  response_body: Buffer | null;
}
