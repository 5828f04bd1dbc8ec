import { z } from 'zod';
import { Mode } from './mode.ts';

export const BalanceTransactionType = z.enum([
  'faucet_credit',
  'deposit',
  'card_issue',
  'card_topup',
  'card_activation_fee',
  'card_funding_fee',
  'transaction_fee',
  'decline_fee',
  'card_release',
  'late_debit',
  'late_refund',
  'adjustment',
]);
export type BalanceTransactionType = z.infer<typeof BalanceTransactionType>;

export const BalanceTransactionSource = z.object({
  type: z.enum(['card', 'topup', 'transaction', 'faucet_credit', 'deposit', 'adjustment']),
  id: z.string(),
});
export type BalanceTransactionSource = z.infer<typeof BalanceTransactionSource>;

/** One change of the prepaid balance (decisions.md, "Resources"); all of them together add up to its total. */
export const BalanceTransactionResource = z.object({
  id: z.string(),
  object: z.literal('balance_transaction'),
  type: BalanceTransactionType,
  amount: z.int().meta({ description: 'Cents: credits above zero, debits below.' }),
  balance_after: z.int().meta({ description: 'The total right after it, in cents.' }),
  source: BalanceTransactionSource.meta({ description: 'What it came from.' }),
  mode: Mode,
  created: z.iso.datetime(),
});
export type BalanceTransactionResource = z.infer<typeof BalanceTransactionResource>;
