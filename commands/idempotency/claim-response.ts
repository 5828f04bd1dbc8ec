import type { Orm } from '../../db/orm.ts';
import { query, readStatement } from '../../db/sql.ts';
import type { CommandContext } from '../command-context.ts';
import { openBody, type StoredResponse } from './idempotency-response.ts';

/** The stored answer of a claim; null while it has none. */
export async function readClaimResponse(
  { orm, ring }: CommandContext,
  claimId: string,
): Promise<StoredResponse | null> {
  const [row] = await responseOf(orm.em.fork(), { claimId });
  return row === undefined
    ? null
    : { status: row.response_status, body: openBody(ring, claimId, row.response_body) };
}

/** A sign of life: the process that runs the claim's request still does. @returns false where the claim is answered */
export async function renewLease(orm: Orm, claimId: string, leaseMs: number): Promise<boolean> {
  const renewed = await query(
    orm.em.fork(),
    `UPDATE idempotency_claim SET lease_expires_at = now() + $2 * interval '1 millisecond'
     WHERE id = $1 AND response_status IS NULL
     RETURNING id`,
    [claimId, leaseMs],
  );
  return renewed.length > 0;
}

/** Gives a key free again whose request turned out not to be valid. Any other answer stays. */
export async function forgetClaim(orm: Orm, claimId: string): Promise<void> {
  await query(orm.em.fork(), 'DELETE FROM idempotency_claim WHERE id = $1 AND response_status = 400', [
    claimId,
  ]);
}

const responseOf = readStatement((db, { claimId }: { claimId: string }) =>
  db
    .selectFrom('idempotency_claim')
    .select(['response_status', 'response_body'])
    .where('id', '=', claimId)
    .where('response_status', 'is not', null)
    .$narrowType<{ response_status: number; response_body: Buffer }>(),
);
