import { query } from '../../db/sql.ts';
import type { ClaimOperation } from '../../domain/claim-operation.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';

/** The id of the account's only claim for this operation. */
export async function claimedBy(
  { orm }: TestStack,
  partner: TestPartner,
  operation: ClaimOperation,
): Promise<string> {
  const claims = await query<{ id: string }>(
    orm.em.fork(),
    'SELECT id FROM idempotency_claim WHERE partner_id = $1 AND operation = $2',
    [partner.id, operation],
  );
  if (claims.length !== 1) throw new Error(`the account has ${claims.length} claims for ${operation}`);
  return claims[0]?.id ?? '';
}
