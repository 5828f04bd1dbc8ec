import type { EntityManager } from '@mikro-orm/postgresql';
import { applyOperations } from './apply-operations.ts';
import { encodeOperation } from './encode-operation.ts';
import type { LedgerOperation, LedgerResult } from './operation.ts';

/**
 * Applies one operation, all or nothing, in one round trip, in the transaction of `em` if it has one. Idempotent by
 * operation id and step: a retry has no second effect and returns the same result. Insufficient funds is a result too, but
 * leaves no trace, so a retry is decided anew.
 *
 * Outside a transaction it retries the errors that isRetryable names. Inside one, the caller gets the error, has lost its
 * transaction, and must run all of it again with the same ids.
 * @throws LedgerConflict, LedgerRejected: nothing was applied, and the caller's transaction can continue.
 */
export async function applyOperation(em: EntityManager, operation: LedgerOperation): Promise<LedgerResult> {
  const [answer] = await applyOperations(em, [encodeOperation(operation)]);
  if (answer instanceof Error) throw answer;
  return answer as LedgerResult;
}
