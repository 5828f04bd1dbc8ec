import { setTimeout } from 'node:timers/promises';
import type { EntityManager } from '@mikro-orm/postgresql';
import { isRetryable } from '../db/is-retryable.ts';
import { query } from '../db/sql.ts';
import type { EncodedOperation } from './encode-operation.ts';
import { ANSWER_COLUMNS, type AnswerRow, answerOf, type LedgerAnswer, requestOf } from './ledger-call.ts';

const MOST_ATTEMPTS = 10;

/**
 * Applies independent operations in one round trip, each all or nothing, and answers each in its place: what is wrong
 * with one is its answer and does not touch the others. Joins the transaction of `em` if it has one; outside one it
 * retries what isRetryable says, with the same ids.
 * @throws PostgreSQL's errors, unchanged.
 */
export async function applyOperations(
  em: EntityManager,
  operations: readonly EncodedOperation[],
): Promise<LedgerAnswer[]> {
  const request = requestOf(operations);
  for (let attempt = 1; ; attempt++) {
    try {
      const rows = await query<AnswerRow>(em, `SELECT ${ANSWER_COLUMNS} FROM ledger.apply_operations($1)`, [
        request,
      ]);
      return operations.map(({ operationId }, index) => answerOf(operationId, rows[index]));
    } catch (error) {
      if (em.isInTransaction() || attempt === MOST_ATTEMPTS || !isRetryable(error)) throw error;
      // A random pause, so that the transactions that deadlocked don't do so again at once.
      await setTimeout(Math.random() * attempt * 10);
    }
  }
}
