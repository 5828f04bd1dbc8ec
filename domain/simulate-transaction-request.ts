import { z } from 'zod';
import { AmountCents, Label } from './fields.ts';
import { TransactionType } from './transaction.ts';

/** As much as the faucet gives at once: pretend money that comes in so can't take a balance past the largest integer. */
const MAX_REFUND_CENTS = 10_000_000;

/** decisions.md, "Resources"; `refund` is beyond the document. */
export const SimulateTransactionRequest = z
  .strictObject({
    type: TransactionType.describe('What to simulate.'),
    amount: AmountCents.describe('Cents. A refund can be at most 10,000,000 cents.'),
    merchant_name: Label(255).optional().describe("The merchant's name."),
    merchant_category_code: z
      .string({ error: 'must be a string' })
      .regex(/^[0-9]{4}$/, 'must be four digits')
      .optional()
      .describe('The merchant category code: four digits (ISO 18245).'),
  })
  .refine(({ type, amount }) => type !== 'refund' || amount <= MAX_REFUND_CENTS, {
    path: ['amount'],
    message: `must be at most ${MAX_REFUND_CENTS} for a refund`,
  })
  .meta({
    id: 'SimulateTransactionRequest',
    description: 'The transaction to simulate.',
    if: { properties: { type: { const: 'refund' } } },
    // biome-ignore lint/suspicious/noThenProperty: it is JSON Schema's.
    then: { properties: { amount: { maximum: MAX_REFUND_CENTS } } },
  });
