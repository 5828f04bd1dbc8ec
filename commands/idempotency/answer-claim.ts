import type { KeyRing } from '../../crypto/key-ring.ts';
import { readStatement, type Transactor, writeStatement } from '../../db/sql.ts';
import type { ApiError } from '../../domain/api-error.ts';
import { presentError } from '../../resources/error.ts';
import { type StoredResponse, sealBody } from './idempotency-response.ts';

/**
 * Stores the response of a claim, in the caller's transaction; a response that is there already stands.
 * @returns the response, or null if it was not stored
 */
export async function storeResponse(
  tx: Transactor,
  ring: KeyRing,
  claimId: string,
  status: number,
  resource: unknown,
): Promise<StoredResponse | null> {
  const body = JSON.stringify(resource);
  const stored = await store(tx, { claimId, status, body: sealBody(ring, claimId, body) });
  return stored.length > 0 ? { status, body } : null;
}

/** {@link storeResponse} with the error's body, which carries the id of the request that made the claim. */
export async function storeError(
  tx: Transactor,
  ring: KeyRing,
  claimId: string,
  error: ApiError,
): Promise<StoredResponse | null> {
  const [claim] = await requestOf(tx, { claimId });
  if (claim === undefined) throw new Error(`there is no idempotency claim ${claimId}`);
  return storeResponse(tx, ring, claimId, error.status, presentError(error, claim.request_id));
}

const store = writeStatement((db, response: { claimId: string; status: number; body: Buffer }) =>
  db
    .updateTable('idempotency_claim')
    .set({ response_status: response.status, response_body: response.body })
    .where('id', '=', response.claimId)
    .where('response_status', 'is', null)
    .returning('id'),
);

const requestOf = readStatement((db, { claimId }: { claimId: string }) =>
  db.selectFrom('idempotency_claim').select('request_id').where('id', '=', claimId),
);
