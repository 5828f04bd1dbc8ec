import { z } from 'zod';
import { BalanceTransactionType, toBalanceTransactionType } from '../accounts/resource.ts';
import { ObjectType } from '../domain/fields.ts';
import { Mode } from '../domain/mode.ts';
import type { AccountMonth } from '../ledger/account-month.ts';

const StatementLine = z
  .object({
    type: BalanceTransactionType,
    count: z.int().min(1).describe('How many balance transactions of this type there were.'),
    amount: z.int().describe('What they add up to, in cents: positive for credits, negative for debits.'),
  })
  .meta({ id: 'StatementLine', description: 'The balance transactions of one type in a month.' });

const StatementCards = z
  .object({
    opening_balance: z.int().describe('What was on all cards when the month began, in cents.'),
    loaded: z.int().min(0).describe('What was moved to cards from your balance.'),
    spent: z.int().min(0).describe('What cards paid.'),
    refunded: z.int().min(0).describe('What cards got back from merchants.'),
    released: z
      .int()
      .min(0)
      .describe('What was moved back to your balance, by withdrawals and when cards were blocked.'),
    closing_balance: z.int().describe('What was on all cards when the month ended, or is now.'),
  })
  .meta({ id: 'StatementCards', description: 'What happened to the money on all cards together.' });

/** A month of an account (docs/partners/statements.md). */
export const StatementResource = z
  .object({
    object: ObjectType('statement'),
    month: z.string().describe('`YYYY-MM`, in UTC.'),
    opening_balance: z.int().describe('The total of your balance when the month began, in cents.'),
    closing_balance: z.int().describe('The total when the month ended, or now if it has not.'),
    lines: z
      .array(StatementLine)
      .describe('What changed your balance, by type. Types that did not occur are left out.'),
    cards: StatementCards,
    mode: Mode,
  })
  .meta({
    id: 'Statement',
    description: 'A month of your account. The opening balance and the lines add up to the closing balance.',
  });
export type StatementResource = z.infer<typeof StatementResource>;

export function presentStatement(
  month: string,
  mode: Mode,
  { openingCents, closingCents, lines, cards }: AccountMonth,
): StatementResource {
  return {
    object: 'statement',
    month,
    opening_balance: openingCents,
    closing_balance: closingCents,
    lines: BalanceTransactionType.options.flatMap((type) => {
      const ofType = lines.filter(({ code }) => toBalanceTransactionType(code) === type);
      if (ofType.length === 0) return [];
      return {
        type,
        count: ofType.reduce((sum, { count }) => sum + count, 0),
        amount: ofType.reduce((sum, { cents }) => sum + cents, 0),
      };
    }),
    cards: {
      opening_balance: cards.openingCents,
      loaded: cards.loadedCents,
      spent: cards.spentCents,
      refunded: cards.refundedCents,
      released: cards.releasedCents,
      closing_balance: cards.closingCents,
    },
    mode,
  };
}
