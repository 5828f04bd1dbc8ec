import type { Mode } from '../domain/mode.ts';

/** The chart of allowed flows (table `ledger.code`): which kind of account is debited, which credited, and how. */
export type TransferCode =
  | 'fund_faucet'
  | 'fund_usdt'
  | 'issue_load'
  | 'fee_activation'
  | 'fee_funding'
  | 'topup'
  | 'purchase'
  | 'refund'
  | 'fee_transaction'
  | 'fee_decline'
  | 'block_release'
  | 'late_debit'
  | 'late_refund'
  | 'adjustment_credit'
  | 'adjustment_debit';

/** An account of the operation's partner and mode. It is opened by its first transfer. */
export type LedgerAccount =
  | 'prepaid'
  | 'network'
  | 'fee_revenue'
  | 'faucet'
  | 'crypto_clearing'
  | 'adjustment'
  | { cardId: string };

export interface Transfer {
  /** Unique within the operation id, over all its calls; together they make the transfer's id. */
  step: string;
  code: TransferCode;
  /** `pending` reserves the amount on the debited account; `post` moves it, or a part of it and releases the rest. */
  phase: 'single' | 'pending' | 'post' | 'void';
  debit: LedgerAccount;
  credit: LedgerAccount;
  /** 1 … 2^53-1. Of a post: at most the pending amount; of a void: the pending amount. */
  amountCents: number;
  /** Of a post or void: the step, within the same operation id, of the pending transfer it resolves. */
  resolves?: string;
}

/** Transfers that happen all or not at all, in this order. */
export interface LedgerOperation {
  operationId: string;
  partnerId: string;
  mode: Mode;
  transfers: Transfer[];
}

export interface Balance {
  /** `totalCents` less `heldCents`. */
  availableCents: number;
  /** Reserved by operations still in flight. */
  heldCents: number;
  totalCents: number;
}

/**
 * `replayed`: the same call was applied before; its answer is given again. `prepaid` is the balance right after the
 * operation's last transfer that touches it, null where none does.
 */
export type LedgerResult =
  | { outcome: 'applied' | 'replayed'; prepaid: Balance | null }
  | { outcome: 'insufficient_funds' };
