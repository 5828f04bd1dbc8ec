import { v5 } from 'uuid';
import type { Mode } from '../domain/mode.ts';
import { LedgerRejected } from './ledger-error.ts';
import type { AccountKind } from './tables.ts';

/**
 * The chart of allowed flows (table `ledger.code`): which kind of account is debited, which credited, and
 * how.
 */
export type TransferCode =
  | 'fund_faucet'
  | 'fund_usdt'
  | 'fund_test_usdt'
  | 'issue_load'
  | 'fee_activation'
  | 'fee_funding'
  | 'topup'
  | 'authorization'
  | 'withdrawal'
  | 'purchase'
  | 'refund'
  | 'fee_transaction'
  | 'fee_decline'
  | 'block_release'
  | 'late_debit'
  | 'late_refund'
  | 'adjustment_credit'
  | 'adjustment_debit';

/** An account of the posting's partner and mode. It is opened by its first transfer. */
export type LedgerAccount = Exclude<AccountKind, 'card'> | { cardId: string };

export interface Transfer {
  /** Unique within the operation id, across all its calls. The transfer's id is derived from the two. */
  step: string;
  code: TransferCode;
  /**
   * `pending` reserves the amount on the debited account; `post` moves it, or a part of it and releases the
   * rest.
   */
  phase: 'single' | 'pending' | 'post' | 'void';
  debit: LedgerAccount;
  credit: LedgerAccount;
  /** 1 … 2^53-1. For a post: at most the pending amount; for a void: exactly the pending amount. */
  amountCents: number;
  /** For a post or void: the step, within the same operation id, of the pending transfer it resolves. */
  resolves?: string;
}

/** Transfers that happen all or not at all, in this order. */
export interface Posting {
  /** Made of the business row's id, such as `topup/topup_…`. It is not the `op_…` that partners see. */
  operationId: string;
  partnerId: string;
  mode: Mode;
  transfers: Transfer[];
}

/** A prepaid balance. */
export interface Balance {
  /** `totalCents` less `heldCents`. */
  availableCents: number;
  /** Reserved by operations still in flight. */
  heldCents: number;
  totalCents: number;
}

/** From PostgreSQL's bigint, which comes as text; the ledger's CHECKs keep it within the safe integers. */
export function toBalance(posted: string, held: string): Balance {
  const totalCents = Number(posted);
  const heldCents = Number(held);
  return { availableCents: totalCents - heldCents, heldCents, totalCents };
}

/** A posting as the JSON that `ledger.apply_operations` takes: each step has the fields of `ledger.step`. */
export interface EncodedPosting {
  operationId: string;
  steps: Record<string, string | number | null>[];
}

/** @throws LedgerRejected `malformed`, for input that PostgreSQL could only refuse with an error. */
export function encodePosting(posting: Posting): EncodedPosting {
  const { operationId, partnerId, mode, transfers } = posting;
  if (!isWellFormed(posting)) throw new LedgerRejected(operationId, 'malformed');
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

/** Key of `ledger.account`: `card/<cardId>`, or `<kind>/<mode>/<partnerId>`. */
export function accountId(account: LedgerAccount, partnerId: string, mode: Mode): string {
  return typeof account === 'string' ? `${account}/${mode}/${partnerId}` : `card/${account.cardId}`;
}

/** UUIDv5 of the operation and its step: a retry brings the same id, so it has one effect. */
export function transferId(operationId: string, step: string): string {
  return v5(step, v5(operationId, NAMESPACE));
}

const NAMESPACE = '1b8a1c0e-6a0f-4e0b-9a43-6d1f6f3f0c52';
const MAX_TRANSFERS = 100;
const ID = /^[!-~]{1,200}$/;

function isWellFormed({ operationId, partnerId, transfers }: Posting): boolean {
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
