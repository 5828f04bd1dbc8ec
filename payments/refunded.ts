import { sql } from 'kysely';
import type { PaymentMerchant } from '../domain/payment.ts';
import type { TransactionType } from '../domain/transaction.ts';

/** The purchase that a refund gives money back for. */
export interface RefundedTransaction {
  id: string;
  /** A partner may name one that is no purchase. */
  type: TransactionType;
  amountCents: number;
  /** What earlier refunds gave back of it. */
  givenBackCents: number;
  merchant: PaymentMerchant;
}

/** A {@link RefundedTransaction} for a SELECT `FROM card_transaction f`. */
export const REFUNDED = sql`jsonb_build_object('id', f.id, 'type', f.type, 'amountCents', f.amount_cents,
        'givenBackCents', (SELECT coalesce(sum(b.amount_cents), 0) FROM card_transaction b
          WHERE b.refunded_transaction_id = f.id AND b.partner_id = f.partner_id AND b.mode = f.mode),
        'merchant', jsonb_build_object('name', f.merchant_name, 'categoryCode', f.merchant_category_code,
          'city', f.merchant_city, 'country', f.merchant_country))`;
