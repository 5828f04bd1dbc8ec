/**
 * An operation id and step were used before, with other content. That is a bug in the caller, so retrying
 * does not help.
 */
export class LedgerConflict extends Error {
  readonly operationId: string;

  constructor(operationId: string) {
    super(
      `Ledger operation ${operationId} was applied before with other transfers; use new steps or a new id.`,
    );
    this.name = 'LedgerConflict';
    this.operationId = operationId;
  }
}

const REASONS = {
  malformed: 'send 1 to 100 transfers with distinct steps, ids in printable ASCII and safe positive amounts',
  unknown_code: 'the code is not in the chart of ledger.code',
  not_permitted: 'the role of this login may not post the code, see posted_by in ledger.code',
  wrong_accounts: 'the code moves money between other kinds of account, see ledger.code',
  other_owner: 'an account belongs to another partner or mode',
  wrong_mode: 'the code is only for the other mode, see ledger.code',
  hold_not_allowed: 'the code has no pending phase, see ledger.code',
  unknown_hold: 'the step it resolves is not a pending transfer of this operation',
  hold_resolved: 'the pending transfer has already been posted or voided',
  hold_differs:
    'code, accounts and amount must fit the pending transfer: a post at most all of it, a void all of it',
  balance_out_of_range: 'the balance would leave the range of safe integers',
} as const;

export type RejectionReason = keyof typeof REASONS;

/** The ledger's rules do not allow the operation, whatever the balance. None of it was applied. */
export class LedgerRejected extends Error {
  readonly operationId: string;
  readonly reason: RejectionReason;

  constructor(operationId: string, reason: RejectionReason) {
    super(`Ledger operation ${operationId} was rejected (${reason}): ${REASONS[reason]}.`);
    this.name = 'LedgerRejected';
    this.operationId = operationId;
    this.reason = reason;
  }
}
