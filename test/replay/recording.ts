import type { WorkflowHandle } from '@temporalio/client';
import type { ClaimOperation } from '../../domain/claim-operation.ts';
import { query } from '../../platform/db/sql.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';

/** Brings a workflow to one outcome. @returns the workflow, which ends by itself from there */
export type Recording = (stack: TestStack) => Promise<WorkflowHandle>;

/** The cardholder of every recorded card. None of this may be in a history. */
export const CARDHOLDER = {
  card_name: 'Quokka travel',
  cardholder_first_name: 'Zebulon',
  cardholder_last_name: 'Quagmire',
  email: 'zebulon@quagmire.example',
};

/** The id of the resource that the account's only claim for this operation creates. */
export async function madeBy(
  { orm }: TestStack,
  partner: TestPartner,
  operation: ClaimOperation,
): Promise<string> {
  const claims = await query<{ id: string }>(
    orm.em.fork(),
    'SELECT resource_id AS id FROM idempotency_claim WHERE partner_id = $1 AND operation = $2',
    [partner.id, operation],
  );
  if (claims.length !== 1) throw new Error(`the account has ${claims.length} claims for ${operation}`);
  return claims[0]?.id ?? '';
}
