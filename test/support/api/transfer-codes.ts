import type { TestStack } from '../stack.ts';
import { asOwner } from './as-owner.ts';

/** What the ledger's transfers of an operation are for. */
export async function transferCodes(stack: TestStack, operationId: string): Promise<string[]> {
  const rows = await asOwner<{ code: string }>(
    stack,
    'SELECT code FROM ledger.transfer WHERE operation_id = $1',
    [operationId],
  );
  return rows.map(({ code }) => code);
}
