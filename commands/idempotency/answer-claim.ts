import type { EntityManager } from '@mikro-orm/postgresql';
import type { KeyRing } from '../../crypto/key-ring.ts';
import { query, readStatement } from '../../db/sql.ts';
import type { ApiError } from '../../domain/api-error.ts';
import { presentError } from '../../resources/error.ts';
import { type StoredResponse, sealBody } from './idempotency-response.ts';

/** Stores the answer of a claim, in the caller's transaction, and returns it; an answer that is there already stands. */
export async function answerClaim(
  tx: EntityManager,
  ring: KeyRing,
  claimId: string,
  status: number,
  resource: unknown,
): Promise<StoredResponse> {
  const body = JSON.stringify(resource);
  await query(
    tx,
    `UPDATE idempotency_claim SET response_status = $2, response_body = $3
     WHERE id = $1 AND response_status IS NULL`,
    [claimId, status, sealBody(ring, claimId, body)],
  );
  return { status, body };
}

/** {@link answerClaim} with the error's body, which carries the id of the request that made the claim. */
export async function refuseClaim(
  tx: EntityManager,
  ring: KeyRing,
  claimId: string,
  error: ApiError,
): Promise<void> {
  const [claim] = await requestOf(tx, { claimId });
  if (claim === undefined) throw new Error(`there is no idempotency claim ${claimId}`);
  await answerClaim(tx, ring, claimId, error.status, presentError(error, claim.request_id));
}

const requestOf = readStatement((db, { claimId }: { claimId: string }) =>
  db.selectFrom('idempotency_claim').select('request_id').where('id', '=', claimId),
);
