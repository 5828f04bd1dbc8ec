import { balanceOf } from './balance.ts';
import type { EncodedOperation } from './encode-operation.ts';
import { LedgerConflict, LedgerRejected, type RejectionReason } from './ledger-error.ts';
import type { Balance, LedgerResult } from './operation.ts';

/** What `ledger.apply_operations` answers each operation with: {@link AnswerRow}. */
export const ANSWER_COLUMNS = 'outcome, reason, prepaid_posted, prepaid_held';

export interface AnswerRow {
  outcome: LedgerResult['outcome'] | 'conflict' | 'rejected';
  reason: RejectionReason | null;
  prepaid_posted: string | null;
  prepaid_held: string | null;
}

export type LedgerAnswer = LedgerResult | LedgerConflict | LedgerRejected;

/** The operations as the function's one parameter. */
export function requestOf(operations: readonly EncodedOperation[]): string {
  return JSON.stringify(
    operations.flatMap(({ steps }, operation) => steps.map((step) => ({ operation, ...step }))),
  );
}

export function answerOf(operationId: string, row: AnswerRow | undefined): LedgerAnswer {
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

function prepaidOf({ prepaid_posted: posted, prepaid_held: held }: AnswerRow): Balance | null {
  return posted === null || held === null ? null : balanceOf(posted, held);
}
