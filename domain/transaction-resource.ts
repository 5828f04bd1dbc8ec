import { z } from 'zod';
import { Mode } from './mode.ts';
import { TransactionFee } from './transaction-fees.ts';

export const TransactionType = z.enum(['purchase', 'decline', 'refund']);
export type TransactionType = z.infer<typeof TransactionType>;

/** `declined_by_network`: the network said no by itself. `simulated_decline`: simulate-transaction asked for one. */
export const DeclineReason = z.enum([
  'insufficient_card_balance',
  'card_frozen',
  'card_blocked',
  'declined_by_network',
  'simulated_decline',
]);
export type DeclineReason = z.infer<typeof DeclineReason>;

/** Whose money it is about: the card's, or, for what reaches a blocked card, the prepaid balance. */
export const ChargedTo = z.enum(['card', 'partner_balance']);
export type ChargedTo = z.infer<typeof ChargedTo>;

/** Where a cardholder paid, as far as the network says. */
export const Merchant = z.object({
  name: z.string().nullable(),
  category_code: z.string().nullable().meta({ description: 'Four digits (ISO 18245).' }),
  city: z.string().nullable(),
  country: z.string().nullable(),
});
export type Merchant = z.infer<typeof Merchant>;

export const NO_MERCHANT: Merchant = { name: null, category_code: null, city: null, country: null };

/** A transaction as partners see it (decisions.md, "Resources"). */
export const TransactionResource = z.object({
  id: z.string(),
  object: z.literal('transaction'),
  card_id: z.string(),
  type: TransactionType,
  status: z.enum(['settled', 'declined']),
  amount: z.int().meta({ description: 'Cents, always above zero; a decline moved none of them.' }),
  currency: z.literal('USD'),
  fees: z
    .array(TransactionFee)
    .meta({ description: 'Debited from the prepaid balance, whatever the amount was charged to.' }),
  merchant: Merchant,
  decline_reason: DeclineReason.nullable(),
  charged_to: ChargedTo,
  card_balance_after: z.int().meta({ description: 'Cents on the card right after it.' }),
  mode: Mode,
  created: z.iso.datetime(),
});
export type TransactionResource = z.infer<typeof TransactionResource>;

/** A row of table `card_transaction`, as the driver gives it. */
export interface TransactionRow {
  id: string;
  partner_id: string;
  mode: Mode;
  card_id: string;
  network_transaction_id: string;
  requested_type: TransactionType;
  forced: boolean;
  type: TransactionType;
  amount_cents: string;
  fees: TransactionFee[];
  merchant_name: string | null;
  merchant_category_code: string | null;
  merchant_city: string | null;
  merchant_country: string | null;
  decline_reason: DeclineReason | null;
  charged_to: ChargedTo;
  card_balance_after_cents: string;
  created_at: string;
}

export function presentTransaction(row: TransactionRow): TransactionResource {
  return {
    id: row.id,
    object: 'transaction',
    card_id: row.card_id,
    type: row.type,
    status: row.type === 'decline' ? 'declined' : 'settled',
    amount: Number(row.amount_cents),
    currency: 'USD',
    fees: row.fees,
    merchant: {
      name: row.merchant_name,
      category_code: row.merchant_category_code,
      city: row.merchant_city,
      country: row.merchant_country,
    },
    decline_reason: row.decline_reason,
    charged_to: row.charged_to,
    card_balance_after: Number(row.card_balance_after_cents),
    mode: row.mode,
    created: new Date(row.created_at).toISOString(),
  };
}
