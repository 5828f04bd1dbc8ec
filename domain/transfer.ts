/** What partners move between their balance and a card: onto it, or back from it. */
export const TRANSFER_DIRECTIONS = ['topup', 'withdrawal'] as const;
export type TransferDirection = (typeof TRANSFER_DIRECTIONS)[number];

/**
 * What differs between the directions. Events, audit entries and ledger operations are named after the
 * direction itself.
 */
export const TRANSFERS = {
  topup: { idPrefix: 'topup', operation: 'top_up_card', noun: 'top-up', networkFailure: 'topup_failed' },
  withdrawal: {
    idPrefix: 'wdr',
    operation: 'withdraw_from_card',
    noun: 'withdrawal',
    networkFailure: 'withdrawal_failed',
  },
} as const satisfies Record<TransferDirection, object>;

/** TOPUP_DEADLINE and WITHDRAWAL_DEADLINE. */
export interface TransferDeadlines {
  topUpDeadlineMs: number;
  withdrawalDeadlineMs: number;
}

export const transferDeadlineMs = (deadlines: TransferDeadlines, direction: TransferDirection): number =>
  direction === 'topup' ? deadlines.topUpDeadlineMs : deadlines.withdrawalDeadlineMs;
