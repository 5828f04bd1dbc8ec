import { z } from 'zod';
import { DeclineReason } from '../domain/authorization.ts';
import { ObjectType, Usd } from '../domain/fields.ts';
import { Mode } from '../domain/mode.ts';
import { ChargedTo, TransactionFee, TransactionType } from '../domain/transaction.ts';
import type { TRANSACTION_COLUMNS } from '../platform/db/columns.ts';
import type { Row } from '../platform/db/entities.ts';

/** Where the card was used, as far as the network says. */
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

/** A transaction as partners see it (docs/partners/transactions.md). */
export const TransactionResource = z
  .object({
    id: z.string().describe('Prefix `txn_`.'),
    object: ObjectType('transaction'),
    card_id: z.string().describe('The card that was used.'),
    type: TransactionType,
    status: z
      .enum(['settled', 'declined'])
      .describe('`declined` for declines, `settled` for everything else.'),
    amount: z.int().min(1).describe('Cents, always positive. A decline does not move them.'),
    currency: Usd,
    fees: z
      .array(TransactionFee)
      .describe(
        'Fees debited from your balance, whatever the amount was charged to. A fee of zero is left out.',
      ),
    merchant: Merchant,
    decline_reason: DeclineReason.nullable().describe('Why it was declined. Null unless it is a decline.'),
    charged_to: ChargedTo.nullable().describe('What paid `amount`, or got it back. Null for a decline.'),
    card_amount: z
      .int()
      .min(0)
      .describe('How many cents of `amount` the card paid, or got back. 0 for a decline.'),
    partner_balance_amount: z
      .int()
      .min(0)
      .describe('How many cents of `amount` your balance paid, or got back. 0 for a decline.'),
    authorization_id: z
      .string()
      .nullable()
      .describe('The authorization that it clears, or that was declined with it. Null without one.'),
    refunded_transaction_id: z
      .string()
      .nullable()
      .describe(
        'Of a refund, the purchase that it gives money back for. Null if that is not known, and for all else.',
      ),
    card_balance_after: z.int().min(0).describe('Cents on the card right after this transaction.'),
    mode: Mode,
    created: z.iso.datetime().describe('When the transaction was settled or declined.'),
  })
  .meta({ id: 'Transaction', description: 'One use of a card, declines included.' });
export type TransactionResource = z.infer<typeof TransactionResource>;

/** The columns of a transaction's row that a transaction is presented from. */
export type TransactionRow = Row<'card_transaction', (typeof TRANSACTION_COLUMNS)[number]>;

export function presentTransaction(row: TransactionRow): TransactionResource {
  const partnerCents = partnerShareCents(row);
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
    charged_to: row.type === 'decline' ? null : row.charged_to,
    card_amount: row.type === 'decline' ? 0 : Number(row.amount_cents) - partnerCents,
    partner_balance_amount: partnerCents,
    authorization_id: row.authorization_id,
    refunded_transaction_id: row.refunded_transaction_id,
    card_balance_after: Number(row.card_balance_after_cents),
    mode: row.mode,
    created: new Date(row.created_at).toISOString(),
  };
}

/** How many cents of a transaction the prepaid balance paid, or got back. The card's share is the rest. */
export function partnerShareCents(row: TransactionRow): number {
  if (row.type === 'decline' || row.charged_to === 'card') return 0;
  return Number(row.charged_to === 'both' ? row.partner_balance_cents : row.amount_cents);
}
