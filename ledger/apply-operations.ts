import { setTimeout } from 'node:timers/promises';
import type { EntityManager } from '@mikro-orm/postgresql';
import { isRetryable } from '../db/is-retryable.ts';
import { query } from '../db/sql.ts';
import { balanceOf } from './balance.ts';
import type { EncodedOperation } from './encode-operation.ts';
import { LedgerConflict, LedgerRejected, type RejectionReason } from './ledger-error.ts';
import type { Balance, LedgerResult } from './operation.ts';

const MOST_ATTEMPTS = 10;

export type LedgerAnswer = LedgerResult | LedgerConflict | LedgerRejected;

interface Row {
  outcome: LedgerResult['outcome'] | 'conflict' | 'rejected';
  reason: RejectionReason | null;
  prepaid_posted: string | null;
  prepaid_held: string | null;
}

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
  const request = JSON.stringify(
    operations.flatMap(({ steps }, operation) => steps.map((step) => ({ operation, ...step }))),
  );
  for (let attempt = 1; ; attempt++) {
    try {
      const rows = await query<Row>(
        em,
        'SELECT outcome, reason, prepaid_posted, prepaid_held FROM ledger.apply_operations($1)',
        [request],
      );
      return operations.map(({ operationId }, index) => answerOf(operationId, rows[index]));
    } catch (error) {
      if (em.isInTransaction() || attempt === MOST_ATTEMPTS || !isRetryable(error)) throw error;
      // Those that met in a deadlock should not meet again at once.
      await setTimeout(Math.random() * attempt * 10);
    }
  }
}

function answerOf(operationId: string, row: Row | undefined): LedgerAnswer {
  if (row === undefined) throw new Error('ledger.apply_operations answers every operation');
  switch (row.outcome) {
    case 'conflict':
      return new LedgerConflict(operationId);
    case 'rejected':
      return new LedgerRejected(operationId, row.reason as RejectionReason);
    case 'insufficient_funds':
      return { outcome: row.outcome };
    default:
      return { outcome: row.outcome, prepaid: prepaidOf(row) };
  }
}

function prepaidOf({ prepaid_posted: posted, prepaid_held: held }: Row): Balance | null {
  return posted === null || held === null ? null : balanceOf(posted, held);
}
