import type { EntityManager } from '@mikro-orm/postgresql';
import { query } from '../db/sql.ts';
import { encodeOperation } from './encode-operation.ts';
import { ANSWER_COLUMNS, type AnswerRow, answerOf, requestOf } from './ledger-call.ts';
import type { LedgerOperation, LedgerResult } from './operation.ts';

/**
 * `applyOperation` in one round trip with the rows it is about, within the transaction of `tx`: where it moves nothing,
 * the rows are written all the same, and the caller has to roll back.
 * @param rows CTEs that write them, with their values from $1, and what to read of these, as SQL by name
 * @throws LedgerConflict, LedgerRejected: roll back as well.
 */
export async function applyOperationWith<Name extends string>(
  tx: EntityManager,
  operation: LedgerOperation,
  rows: { ctes: readonly string[]; values: readonly unknown[]; reads: Record<Name, string> },
): Promise<{ moved: LedgerResult; wrote: Record<Name, unknown> }> {
  const reads = Object.entries<string>(rows.reads).map(([name, sql]) => `${sql} AS ${name}`);
  const [answer] = await query<AnswerRow & Record<Name, unknown>>(
    tx,
    `WITH ${rows.ctes.join(', ')}
     SELECT ${[ANSWER_COLUMNS, ...reads].join(', ')}
     FROM ledger.apply_operations($${rows.values.length + 1})`,
    [...rows.values, requestOf([encodeOperation(operation)])],
  );
  const moved = answerOf(operation.operationId, answer);
  if (moved instanceof Error) throw moved;
  return { moved, wrote: answer as Record<Name, unknown> };
}
