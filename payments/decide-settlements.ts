import type { CardBalance, CardRow } from '../cards/resource.ts';
import { type AccountClock, accountTime } from '../domain/account-clock.ts';
import { ApiError } from '../domain/api-error.ts';
import type { FeePlan } from '../domain/fees.ts';
import type { Tenant } from '../domain/mode.ts';
import { type AppliedControls, afterSpending, refusalByControls } from '../domain/spending-controls.ts';
import {
  decideTransaction,
  type TransactionDecision,
  type TransactionRequest,
} from '../domain/transaction.ts';
import type { Posting, Transfer } from '../ledger/posting.ts';
import { newId, readIdTime } from '../platform/crypto/new-id.ts';
import {
  type Merchant,
  partnerShareCents,
  type TransactionResource,
  type TransactionRow,
} from './transaction-resource.ts';

/**
 * Something a cardholder did with a card of this account and mode, as the network reports it or a partner
 * simulates it.
 */
export interface Settlement extends Tenant, TransactionRequest {
  cardId: string;
  /**
   * The network's id for it, unique in the mode: the same settlement reported again is the same transaction.
   */
  networkTransactionId: string;
  /** The network's id of what it is part of; null if it has none. */
  networkPaymentId?: string | null;
  /** The purchase that a refund in test mode gives money back for, as the partner names it. */
  refundedTransactionId?: string | undefined;
  merchant: Merchant;
  /** Whether the network may describe the merchant differently when it reports the same settlement again. */
  merchantMayChange?: boolean;
}

export interface Settled {
  transaction: TransactionResource;
  /** It was settled before, so nothing happened this time. */
  replayed: boolean;
}

/** The outcome of one settlement among several. A refusal is an outcome too. */
export type SettlementOutcome = Settled | ApiError;

/** The state that a settlement is decided on. */
export interface SettlementTerms {
  /** Undefined if the account has no such card in this mode. */
  card: CardRow | undefined;
  /** The card's before the first of the settlements, which hold nothing themselves. */
  balance: CardBalance;
  /** What the card's pending top-ups would add. */
  arrivingCents: bigint;
  feePlan: FeePlan;
  /** What restricts the card's purchases, as it was before the first of the settlements. */
  controls: AppliedControls;
  /** The account's, which the transaction holds. */
  clock: AccountClock;
  /** The transaction that already has this network transaction id. */
  known: TransactionRow | null;
  /**
   * What a refund gives money back for: the transaction that it names, if that is on its card, or the only
   * purchase of the network's payment.
   */
  refunded: RefundedTransaction | null;
}

export interface RefundedTransaction {
  id: string;
  type: TransactionRow['type'];
  amountCents: number;
  /** What earlier refunds gave back of it. */
  givenBackCents: number;
  merchant: Merchant;
}

/** A transaction to write, and the card it is on. */
export interface NewTransaction {
  row: TransactionRow;
  card: CardRow;
  /** How much of the card's balance is held. */
  heldCents: number;
  clock: AccountClock;
}

/** `known`: the transaction was settled before, or earlier among the same settlements. */
export type SettlementDecision = NewTransaction | { known: TransactionRow } | ApiError;

/**
 * Decides settlements in order: each one sees its card's balance, what the card has spent, and the
 * network's ids as the ones before it leave them.
 * @param terms of each settlement, in its place
 * @param at when they are settled, in real time, which is when the terms were read
 */
export function decideSettlements(
  settlements: readonly Settlement[],
  terms: readonly SettlementTerms[],
  at: Date,
): SettlementDecision[] {
  const balances = new Map<string, number>();
  const spending = new Map<string, AppliedControls>();
  const decided = new Map<string, TransactionRow>();
  const givenBack = new Map<string, number>();
  // Sorted, so that ids made in one millisecond are in the order of the transactions.
  const ids = settlements.map(() => newId('txn', at)).sort();

  const decide = (settlement: Settlement, index: number): SettlementDecision => {
    const {
      card,
      balance,
      controls: applied,
      arrivingCents,
      feePlan,
      clock,
      known,
      refunded,
    } = terms[index] as SettlementTerms;
    if (card === undefined) return new ApiError('card_not_found');
    const name = `${settlement.mode} ${settlement.networkTransactionId}`;
    const before = known ?? decided.get(name);
    if (before !== undefined) return isSameTransaction(before, settlement) ? { known: before } : conflict();
    const { heldCents } = balance;
    const balanceCents = balances.get(card.id) ?? balance.balanceCents;
    const controls = spending.get(card.id) ?? applied;
    const { amountCents } = settlement;
    const backCents = givenBack.get(refunded?.id ?? '') ?? 0;
    const isNamed = settlement.refundedTransactionId !== undefined;
    if (isNamed) requireRefundable(refunded, amountCents, backCents);
    const merchant =
      isNamed && refunded !== null && isNowhere(settlement.merchant)
        ? refunded.merchant
        : settlement.merchant;
    const refusedByControls = refusalByControls(controls, {
      amountCents,
      wholeCents: amountCents,
      categoryCode: merchant.category_code,
      country: merchant.country,
    });
    const decision = decideTransaction(
      settlement,
      { status: card.status, balanceCents, heldCents, arrivingCents },
      feePlan,
      refusedByControls,
    );
    const id = ids[index] as string;
    const row = {
      ...toTransactionRow(id, accountTime(clock, readIdTime(id)), { ...settlement, merchant }, decision),
      refunded_transaction_id: refunded?.id ?? null,
    };
    balances.set(card.id, decision.cardBalanceAfterCents);
    if (refunded !== null) givenBack.set(refunded.id, backCents + amountCents);
    if (decision.type !== 'decline') {
      const spentCents = decision.type === 'refund' ? -amountCents : amountCents;
      spending.set(card.id, afterSpending(controls, spentCents, merchant.category_code));
    }
    decided.set(name, row);
    return { row, card, heldCents, clock };
  };
  return settlements.map((settlement, index) => {
    try {
      return decide(settlement, index);
    } catch (error) {
      if (error instanceof ApiError) return error;
      throw error;
    }
  });
}

/**
 * The ledger's posting of a transaction: its amount, between the network and whoever pays or gets it, and its
 * fees. What an authorization's hold pays is in the authorization's posting. Null if no money moves.
 */
export function settlementPosting(row: TransactionRow): Posting | null {
  const transfers: Transfer[] = [];
  if (row.type !== 'decline') transfers.push(...amountTransfers(row));
  for (const { type, amount } of row.fees) {
    transfers.push({
      step: 'fee',
      code: type === 'decline' ? 'fee_decline' : 'fee_transaction',
      phase: 'single',
      debit: 'prepaid',
      credit: 'fee_revenue',
      amountCents: amount,
    });
  }
  if (transfers.length === 0) return null;
  return { operationId: `settle/${row.id}`, partnerId: row.partner_id, mode: row.mode, transfers };
}

function amountTransfers(row: TransactionRow): Transfer[] {
  const { type, charged_to: chargedTo, card_id: cardId } = row;
  const partnerCents = partnerShareCents(row);
  const cardCents = Number(row.amount_cents) - partnerCents - Number(row.from_hold_cents);
  const network = 'network' as const;
  const onCard =
    type === 'refund'
      ? ({ code: 'refund', debit: network, credit: { cardId } } as const)
      : ({ code: 'purchase', debit: { cardId }, credit: network } as const);
  const onBalance =
    type === 'refund'
      ? ({ code: 'late_refund', debit: network, credit: 'prepaid' } as const)
      : ({ code: 'late_debit', debit: 'prepaid', credit: network } as const);
  const cardTransfer: Transfer = { ...onCard, step: 'amount', phase: 'single', amountCents: cardCents };
  const step = chargedTo === 'both' ? 'late' : 'amount';
  const balanceTransfer: Transfer = { ...onBalance, step, phase: 'single', amountCents: partnerCents };
  return [cardTransfer, balanceTransfer].filter(({ amountCents }) => amountCents > 0);
}

/** Whether the network reports the same transaction again, and not another one under the same id. */
function isSameTransaction(row: TransactionRow, settlement: Settlement): boolean {
  const { cardId, type, amountCents, forced, merchant, merchantMayChange = false } = settlement;
  const isSameMerchant =
    row.merchant_name === merchant.name &&
    row.merchant_category_code === merchant.category_code &&
    row.merchant_city === merchant.city &&
    row.merchant_country === merchant.country;
  return (
    row.authorization_id === null &&
    row.card_id === cardId &&
    row.requested_type === type &&
    Number(row.amount_cents) === amountCents &&
    row.forced === forced &&
    (merchantMayChange || isSameMerchant)
  );
}

const isNowhere = (merchant: Merchant) => Object.values(merchant).every((said) => said === null);

/**
 * @param backCents what refunds that are settled together with this one give back @throws ApiError
 * `validation_failed`
 */
function requireRefundable(
  refunded: RefundedTransaction | null,
  amountCents: number,
  backCents: number,
): void {
  if (refunded === null)
    throw ApiError.ofField('transaction_id', 'transaction_id is no transaction of this card');
  if (refunded.type !== 'purchase')
    throw ApiError.ofField(
      'transaction_id',
      `transaction_id is a ${refunded.type}: only a purchase can be refunded`,
    );
  const leftCents = refunded.amountCents - refunded.givenBackCents - backCents;
  if (leftCents <= 0)
    throw ApiError.ofField(
      'transaction_id',
      'transaction_id is a purchase that was already refunded in full',
    );
  if (amountCents > leftCents)
    throw ApiError.ofField(
      'amount',
      `amount is more than the ${leftCents} cents of the purchase that are left to refund`,
    );
}

function conflict(): ApiError {
  return new ApiError('idempotency_conflict', {
    message:
      'A different transaction was already settled with this network transaction id, and this one was not. Compare the two ' +
      'before you send it with another id: if they are the same purchase, that would settle it twice.',
  });
}

function toTransactionRow(
  id: string,
  created: Date,
  settlement: Settlement,
  decision: TransactionDecision,
): TransactionRow {
  const { merchant } = settlement;
  return {
    id,
    partner_id: settlement.partnerId,
    mode: settlement.mode,
    card_id: settlement.cardId,
    network_transaction_id: settlement.networkTransactionId,
    requested_type: settlement.type,
    forced: settlement.forced,
    type: decision.type,
    amount_cents: String(settlement.amountCents),
    fees: decision.fees,
    merchant_name: merchant.name,
    merchant_category_code: merchant.category_code,
    merchant_city: merchant.city,
    merchant_country: merchant.country,
    decline_reason: decision.declineReason,
    charged_to: decision.chargedTo,
    card_balance_after_cents: String(decision.cardBalanceAfterCents),
    created_at: created.toISOString(),
    authorization_id: null,
    from_hold_cents: '0',
    partner_balance_cents: null,
    network_payment_id: settlement.networkPaymentId ?? null,
    refunded_transaction_id: null,
  };
}
