import { newId, timeOf } from '../../crypto/new-id.ts';
import { ApiError } from '../../domain/api-error.ts';
import { decideTransaction, type TransactionDecision } from '../../domain/transaction.ts';
import type { CardRow } from '../../resources/card.ts';
import type { TransactionRow } from '../../resources/transaction.ts';
import { isSameTransaction, type Settlement } from './settlement.ts';
import type { SettlementTerms } from './settlement-terms.ts';

/** A transaction to be made, and the card it is on. */
export interface NewTransaction {
  row: TransactionRow;
  card: CardRow;
}

/** `known`: it was told before, or earlier among the same settlements. */
export type Decision = NewTransaction | { known: TransactionRow } | ApiError;

/** Decides settlements in order: each finds its card's balance, and the network's ids, as those before it leave them. */
export function decideSettlements(
  settlements: readonly Settlement[],
  terms: readonly SettlementTerms[],
): Decision[] {
  const balances = new Map<string, number>();
  const told = new Map<string, TransactionRow>();
  // Sorted, so that ids made in one millisecond are in the order of the transactions.
  const ids = settlements.map(() => newId('txn')).sort();

  const decide = (settlement: Settlement, index: number): Decision => {
    const { card, cardBalanceCents, arrivingCents, feePlan, known } = terms[index] as SettlementTerms;
    if (card === undefined) return new ApiError('card_not_found');
    const name = `${settlement.mode} ${settlement.networkTransactionId}`;
    const before = known ?? told.get(name);
    if (before !== undefined) return isSameTransaction(before, settlement) ? { known: before } : conflict();
    const balanceCents = balances.get(card.id) ?? cardBalanceCents;
    const decision = decideTransaction(
      settlement,
      { status: card.status, balanceCents, arrivingCents },
      feePlan,
    );
    const row = rowOf(ids[index] as string, settlement, decision);
    balances.set(card.id, decision.cardBalanceAfterCents);
    told.set(name, row);
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

function conflict(): ApiError {
  return new ApiError('idempotency_conflict', {
    message:
      'A different transaction was already settled with this network transaction id. Give each transaction its own id.',
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
