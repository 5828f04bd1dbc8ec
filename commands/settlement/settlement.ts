import type { ApiError } from '../../domain/api-error.ts';
import type { Tenant } from '../../domain/tenant.ts';
import type { TransactionRequest } from '../../domain/transaction.ts';
import type { Merchant, TransactionResource, TransactionRow } from '../../resources/transaction.ts';

/** Something a cardholder did, as the network tells it or a partner simulates it, for a card of this account and mode. */
export interface Settlement extends Tenant, TransactionRequest {
  cardId: string;
  /** What the network calls it, unique in the mode: the same told again is the same transaction. */
  networkTransactionId: string;
  merchant: Merchant;
}

export interface Settled {
  transaction: TransactionResource;
  /** Told before: nothing happened this time. */
  replayed: boolean;
}

/** What became of one settlement of several: a refusal is an outcome like any other. */
export type SettlementOutcome = Settled | ApiError;

/** Whether the network tells the same again, and not something else under the same id. */
export function isSameTransaction(row: TransactionRow, settlement: Settlement): boolean {
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
