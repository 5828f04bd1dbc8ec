import { accountId } from './account-id.ts';
import { LedgerRejected } from './ledger-error.ts';
import type { LedgerOperation, Transfer } from './operation.ts';
import { transferId } from './transfer-id.ts';

const MAX_TRANSFERS = 100;
const ID = /^[!-~]{1,200}$/;

/** An operation as `ledger.apply_operations` takes it: its transfers as `ledger.step`, in JSON's names. */
export interface EncodedOperation {
  operationId: string;
  steps: Record<string, string | number | null>[];
}

/** @throws LedgerRejected `malformed`, for what PostgreSQL could only answer with an error. */
export function encodeOperation(operation: LedgerOperation): EncodedOperation {
  const { operationId, partnerId, mode, transfers } = operation;
  if (!isWellFormed(operation)) throw new LedgerRejected(operationId, 'malformed');
  const steps = transfers.map((transfer) => ({
    operation_id: operationId,
    partner_id: partnerId,
    mode,
    id: transferId(operationId, transfer.step),
    code: transfer.code,
    phase: transfer.phase,
    pending_id: transfer.resolves === undefined ? null : transferId(operationId, transfer.resolves),
    debit_id: accountId(transfer.debit, partnerId, mode),
    credit_id: accountId(transfer.credit, partnerId, mode),
    amount: transfer.amountCents,
  }));
  return { operationId, steps };
}

function isWellFormed({ operationId, partnerId, transfers }: LedgerOperation): boolean {
  return (
    ID.test(operationId) &&
    ID.test(partnerId) &&
    transfers.length > 0 &&
    transfers.length <= MAX_TRANSFERS &&
    new Set(transfers.map((transfer) => transfer.step)).size === transfers.length &&
    transfers.every(isTransferWellFormed)
  );
}

function isTransferWellFormed({ amountCents, phase, resolves, debit, credit }: Transfer): boolean {
  return (
    Number.isSafeInteger(amountCents) &&
    amountCents > 0 &&
    (phase === 'post' || phase === 'void') === (resolves !== undefined) &&
    [debit, credit].every((account) => typeof account === 'string' || ID.test(account.cardId))
  );
}
