import { ApiError } from '../domain/api-error.ts';
import { MAX_AMOUNT_CENTS } from '../domain/money.ts';
import { LedgerRejected } from './ledger-error.ts';

/** Turns the ledger's refusal of a balance past the largest integer into the partner's 400. */
export function refuseTooLarge(error: unknown): never {
  if (!(error instanceof LedgerRejected) || error.reason !== 'balance_out_of_range') throw error;
  throw ApiError.ofField(
    'amount',
    `amount would take a balance above the maximum of ${MAX_AMOUNT_CENTS} cents`,
  );
}
