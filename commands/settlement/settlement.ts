import { newId, timeOf } from '../../crypto/new-id.ts';
import { ApiError } from '../../domain/api-error.ts';
import type { FeePlan } from '../../domain/fees.ts';
import type { Tenant } from '../../domain/mode.ts';
import {
  decideTransaction,
  type TransactionDecision,
  type TransactionRequest,
} from '../../domain/transaction.ts';
import type { LedgerOperation, Transfer } from '../../ledger/operation.ts';
import type { CardRow } from '../../resources/card.ts';
import type { Merchant, TransactionResource, TransactionRow } from '../../resources/transaction.ts';

/** Something a cardholder did with a card of this account and mode, as the network reports it or a partner simulates it. */
export interface Settlement extends Tenant, TransactionRequest {
  cardId: string;
  /** The network's id for it, unique in the mode: the same settlement reported again is the same transaction. */
  networkTransactionId: string;
  merchant: Merchant;
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
  /** On the card before the first of the settlements. */
  cardBalanceCents: number;
  /** What the card's pending top-ups would add. */
  arrivingCents: bigint;
  feePlan: FeePlan;
  /** The transaction that already has this network transaction id. */
  known: TransactionRow | null;
}

/** A transaction to write, and the card it is on. */
export interface NewTransaction {
  row: TransactionRow;
  card: CardRow;
}

/** `known`: the transaction was settled before, or earlier among the same settlements. */
export type SettlementDecision = NewTransaction | { known: TransactionRow } | ApiError;

/**
 * Decides settlements in order: each one sees its card's balance and the network's ids as the ones before it leave them.
 * @param terms of each settlement, in its place
 */
export function decideSettlements(
  settlements: readonly Settlement[],
  terms: readonly SettlementTerms[],
): SettlementDecision[] {
  const balances = new Map<string, number>();
  const decided = new Map<string, TransactionRow>();
  // Sorted, so that ids made in one millisecond are in the order of the transactions.
  const ids = settlements.map(() => newId('txn')).sort();

  const decide = (settlement: Settlement, index: number): SettlementDecision => {
    const { card, cardBalanceCents, arrivingCents, feePlan, known } = terms[index] as SettlementTerms;
    if (card === undefined) return new ApiError('card_not_found');
    const name = `${settlement.mode} ${settlement.networkTransactionId}`;
    const before = known ?? decided.get(name);
    if (before !== undefined) return isSameTransaction(before, settlement) ? { known: before } : conflict();
    const balanceCents = balances.get(card.id) ?? cardBalanceCents;
    const decision = decideTransaction(
      settlement,
      { status: card.status, balanceCents, arrivingCents },
      feePlan,
    );
    const row = rowOf(ids[index] as string, settlement, decision);
    balances.set(card.id, decision.cardBalanceAfterCents);
    decided.set(name, row);
    return { row, card };
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
 * The ledger operation of a transaction: its amount, between the network and the card (or the prepaid balance if the card is
 * blocked), and its fees. Null if no money moves.
 */
export function settlementOperation(row: TransactionRow): LedgerOperation | null {
  const transfers = [
    ...(row.type === 'decline' ? [] : [amountTransfer(row)]),
    ...row.fees.map(
      ({ type, amount }): Transfer => ({
        step: 'fee',
        code: type === 'decline' ? 'fee_decline' : 'fee_transaction',
        phase: 'single',
        debit: 'prepaid',
        credit: 'fee_revenue',
        amountCents: amount,
      }),
    ),
  ];
  if (transfers.length === 0) return null;
  return { operationId: `settle/${row.id}`, partnerId: row.partner_id, mode: row.mode, transfers };
}

function amountTransfer({ type, charged_to, card_id: cardId, amount_cents }: TransactionRow): Transfer {
  const isLate = charged_to === 'partner_balance';
  const own = isLate ? 'prepaid' : { cardId };
  const common = { step: 'amount', phase: 'single', amountCents: Number(amount_cents) } as const;
  return type === 'refund'
    ? { ...common, code: isLate ? 'late_refund' : 'refund', debit: 'network', credit: own }
    : { ...common, code: isLate ? 'late_debit' : 'purchase', debit: own, credit: 'network' };
}

/** Whether the network reports the same transaction again, and not another one under the same id. */
function isSameTransaction(row: TransactionRow, settlement: Settlement): boolean {
  const { cardId, type, amountCents, forced, merchant } = settlement;
  return (
    row.card_id === cardId &&
    row.requested_type === type &&
    Number(row.amount_cents) === amountCents &&
    row.forced === forced &&
    row.merchant_name === merchant.name &&
    row.merchant_category_code === merchant.category_code &&
    row.merchant_city === merchant.city &&
    row.merchant_country === merchant.country
  );
}

function conflict(): ApiError {
  return new ApiError('idempotency_conflict', {
    message:
      'A different transaction was already settled with this network transaction id, and this one was not. Compare the two ' +
      'before you send it with another id: if they are the same purchase, that would settle it twice.',
  });
}

function rowOf(id: string, settlement: Settlement, decision: TransactionDecision): TransactionRow {
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
    created_at: timeOf(id).toISOString(),
  };
}
