import type { EntityManager } from '@mikro-orm/postgresql';
import { query } from '../db/sql.ts';
import { encodeOperation } from './encode-operation.ts';
import { ANSWER_COLUMNS, type AnswerRow, answerOf, requestOf } from './ledger-call.ts';
import type { LedgerOperation, LedgerResult } from './operation.ts';

/**
 * `applyOperation` in one round trip with the rows it is about, within the transaction of `tx`: where it moves nothing,
 * the rows are written all the same, and the caller has to roll back.
 * @param rows CTEs that write them, with their values from $1; whether its CTE `done` has a row is the answer's `wrote`
 * @throws LedgerConflict, LedgerRejected
 */
export async function applyOperationWith(
  tx: EntityManager,
  operation: LedgerOperation,
  rows: { ctes: readonly string[]; values: readonly unknown[] },
): Promise<{ moved: LedgerResult; wrote: boolean }> {
  const [answer] = await query<AnswerRow & { wrote: boolean }>(
    tx,
    `WITH ${rows.ctes.join(', ')}
     SELECT ${ANSWER_COLUMNS}, EXISTS (SELECT FROM done) AS wrote
     FROM ledger.apply_operations($${rows.values.length + 1})`,
    [...rows.values, requestOf([encodeOperation(operation)])],
  );
  const moved = answerOf(operation.operationId, answer);
  if (moved instanceof Error) throw moved;
  return { moved, wrote: answer?.wrote === true };
}
