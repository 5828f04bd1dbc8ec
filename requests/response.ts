import { sql } from 'kysely';
import type { ApiError } from '../domain/api-error.ts';
import type { KeyRing } from '../platform/crypto/key-ring.ts';
import { readStatement, writeStatement } from '../platform/db/sql.ts';
import type { CommandContext, OpenCommand } from './command-context.ts';
import { presentError } from './error-resource.ts';

/** The response to a request exactly as it is sent: the status and the body's text. */
export interface StoredResponse {
  status: number;
  body: string;
}

// Responses and requests can contain a cardholder's name, so they are sealed in the claim's row, each bound
// to its claim and column.

/** The context that they are sealed for. */
export const requestContext = (claimId: string): string => `${claimId}/request`;
export const responseContext = (claimId: string): string => `${claimId}/response`;

export const sealRequest = (ring: KeyRing, claimId: string, request: unknown): Buffer =>
  ring.seal(JSON.stringify(request), requestContext(claimId));

export const openRequest = (ring: KeyRing, claimId: string, sealed: Buffer): unknown =>
  JSON.parse(ring.open(sealed, requestContext(claimId)));

export const sealBody = (ring: KeyRing, claimId: string, body: string): Buffer =>
  ring.seal(body, responseContext(claimId));

export const openBody = (ring: KeyRing, claimId: string, sealed: Buffer): string =>
  ring.open(sealed, responseContext(claimId));

/**
 * Stores a claim's response in the caller's transaction, unless there is one already.
 * @returns the response, or null if it was not stored
 */
export async function storeResponse(
  { tx, ring }: OpenCommand,
  claimId: string,
  status: number,
  resource: unknown,
): Promise<StoredResponse | null> {
  const body = JSON.stringify(resource);
  const stored = await store(tx, { claimId, status, body: sealBody(ring, claimId, body) });
  return stored.length > 0 ? { status, body } : null;
}

/** {@link storeResponse} with the error's body, which has the id of the request that made the claim. */
export async function storeError(
  command: OpenCommand,
  claimId: string,
  error: ApiError,
): Promise<StoredResponse | null> {
  const [claim] = await selectRequest(command.tx, { claimId });
  if (claim === undefined) throw new Error(`there is no idempotency claim ${claimId}`);
  return storeResponse(command, claimId, error.status, presentError(error, claim.request_id));
}

const store = writeStatement(
  (db, response: { claimId: string; status: number; body: Buffer }) =>
    db
      .updateTable('idempotency_claim')
      .set({ response_status: response.status, response_body: response.body })
      .where('id', '=', response.claimId)
      .where('response_status', 'is', null)
      .returning('id'),
  { acrossTenants: 'id' },
);

/**
 * {@link storeError} for claims that have no response and that the transaction holds, with the ids of the
 * requests that made them.
 * @returns the responses, in the same order
 */
export async function storeErrors(
  { tx, ring }: OpenCommand,
  claims: readonly { claimId: string; requestId: string }[],
  error: ApiError,
): Promise<StoredResponse[]> {
  if (claims.length === 0) return [];
  const { status } = error;
  const responses = claims.map(({ claimId, requestId }) => ({
    claimId,
    body: JSON.stringify(presentError(error, requestId)),
  }));
  const claimIds = responses.map(({ claimId }) => claimId);
  const bodies = responses.map(({ claimId, body }) => sealBody(ring, claimId, body));
  await storeAll(tx, { claimIds, status, bodies });
  return responses.map(({ body }) => ({ status, body }));
}

const storeAll = writeStatement(
  (_, values: { claimIds: string[]; status: number; bodies: Buffer[] }) => sql`
    UPDATE idempotency_claim c SET response_status = ${values.status}, response_body = r.body
    FROM unnest(${values.claimIds}::text[], ${values.bodies}::bytea[]) r (id, body)
    WHERE c.id = r.id AND c.response_status IS NULL`,
  { acrossTenants: 'id' },
);

const selectRequest = readStatement(
  (db, { claimId }: { claimId: string }) =>
    db.selectFrom('idempotency_claim').select('request_id').where('id', '=', claimId),
  { acrossTenants: 'id' },
);

/** The stored response of a claim; null while it has none. */
export async function readClaimResponse(
  { orm, ring }: CommandContext,
  claimId: string,
): Promise<StoredResponse | null> {
  const [row] = await selectResponse(orm.em.fork(), { claimId });
  return row === undefined
    ? null
    : { status: row.response_status, body: openBody(ring, claimId, row.response_body) };
}

const selectResponse = readStatement(
  (db, { claimId }: { claimId: string }) =>
    db
      .selectFrom('idempotency_claim')
      .select(['response_status', 'response_body'])
      .where('id', '=', claimId)
      .where('response_status', 'is not', null)
      .$narrowType<{ response_status: number; response_body: Buffer }>(),
  { acrossTenants: 'id' },
);
