import { z } from 'zod';
import { ObjectType, Usd } from './fields.ts';
import { Mode } from './mode.ts';
import { TransactionFee } from './transaction-fees.ts';

export const TransactionType = z.enum(['purchase', 'decline', 'refund']).meta({
  id: 'TransactionType',
  description:
    '`purchase`: the amount left the card. `decline`: no money moved, apart from the fee. `refund`: the amount came back.',
});
export type TransactionType = z.infer<typeof TransactionType>;

export const DeclineReason = z
  .enum([
    'insufficient_card_balance',
    'card_frozen',
    'card_blocked',
    'declined_by_network',
    'simulated_decline',
  ])
  .meta({
    id: 'DeclineReason',
    description:
      '`insufficient_card_balance`: the card held less than the purchase. `card_frozen`, `card_blocked`: the status of ' +
      'the card at the time. `declined_by_network`: the card network declined. `simulated_decline`: you asked for a ' +
      'decline.',
  });
export type DeclineReason = z.infer<typeof DeclineReason>;

/** Whose money it is about: the card's, or, for what reaches a blocked card, the prepaid balance. */
export const ChargedTo = z.enum(['card', 'partner_balance']).meta({
  id: 'ChargedTo',
  description:
    'What the amount was taken from or returned to: the card, or your balance if the card was already blocked.',
});
export type ChargedTo = z.infer<typeof ChargedTo>;

/** Where a cardholder paid, as far as the network says. */
export const Merchant = z
  .object({
    name: z.string().nullable().describe("The merchant's name."),
    category_code: z.string().nullable().describe('The merchant category code: four digits (ISO 18245).'),
    city: z.string().nullable().describe('The city of the merchant.'),
    country: z.string().nullable().describe('The country of the merchant.'),
  })
  .meta({
    id: 'Merchant',
    description: 'Where the card was used. A field is null if the card network did not say.',
  });
export type Merchant = z.infer<typeof Merchant>;

export const NO_MERCHANT: Merchant = { name: null, category_code: null, city: null, country: null };

/** A transaction as partners see it (decisions.md, "Resources"). */
export const TransactionResource = z
  .object({
    id: z.string().describe('Prefix `txn_`.'),
    object: ObjectType('transaction'),
    card_id: z.string().describe('The card that was used.'),
    type: TransactionType,
    status: z
      .enum(['settled', 'declined'])
      .describe('`declined` for declines, `settled` for everything else.'),
    amount: z.int().min(1).describe('Cents, always positive. A decline moves none of them.'),
    currency: Usd,
    fees: z
      .array(TransactionFee)
      .describe(
        'Fees debited from your balance, whatever the amount was charged to. A fee of zero is left out.',
      ),
    merchant: Merchant,
    decline_reason: DeclineReason.nullable().describe('Why it was declined. Null unless it is a decline.'),
    charged_to: ChargedTo,
    card_balance_after: z.int().min(0).describe('Cents on the card right after this transaction.'),
    mode: Mode,
    created: z.iso.datetime().describe('When the transaction was settled or declined.'),
  })
  .meta({ id: 'Transaction', description: 'One use of a card, declines included.' });
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
