import type { EntityManager } from '@mikro-orm/postgresql';
import { applyOperations } from './apply-operations.ts';
import { encodeOperation } from './encode-operation.ts';
import type { LedgerOperation, LedgerResult } from './operation.ts';

/**
 * Applies one operation, all or nothing, in one round trip, in the transaction of `em` if it has one. Idempotent by
 * operation id and step (design of the ledger, "Rules"): a retry has one effect and the same answer. A lack of funds
 * is an answer too, but leaves no trace: a retry is decided anew.
 *
 * Outside a transaction it retries what isRetryable says; inside one that error goes to the caller, whose transaction
 * is lost and who runs all of it again with the same ids.
 * @throws LedgerConflict, LedgerRejected: nothing was applied, and the caller's transaction goes on.
 */
export async function applyOperation(em: EntityManager, operation: LedgerOperation): Promise<LedgerResult> {
  const [answer] = await applyOperations(em, [encodeOperation(operation)]);
  if (answer instanceof Error) throw answer;
  return answer as LedgerResult;
}
