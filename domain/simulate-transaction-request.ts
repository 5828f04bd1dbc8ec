import { z } from 'zod';
import { AmountCents, Label } from './fields.ts';
import { TransactionType } from './transaction-resource.ts';

/** decisions.md, "Resources"; `refund` is beyond the document. */
export const SimulateTransactionRequest = z.strictObject({
  type: TransactionType,
  amount: AmountCents,
  merchant_name: Label(255).optional(),
  merchant_category_code: z
    .string({ error: 'must be a string' })
    .regex(/^[0-9]{4}$/, 'must be four digits')
    .optional(),
});
