import { z } from 'zod';
import { AmountCents, Label, Line } from './fields.ts';

/** partner-api.md, "POST /cards body". */
export const CreateCardRequest = z.strictObject({
  amount: AmountCents.meta({ description: 'Cents to land on the card.' }),
  external_ref: Line(255).meta({ description: 'Your own id for the card; unique per account and mode.' }),
  product_code: Line(100)
    .optional()
    .meta({ description: 'One of GET /products; the current one when left out.' }),
  card_name: Label(255).optional().meta({ description: 'Display label.' }),
  cardholder_first_name: Label(100).optional(),
  cardholder_last_name: Label(100).optional(),
  email: z.email({ error: 'must be a valid email address' }).max(254).optional(),
});
export type CreateCardRequest = z.infer<typeof CreateCardRequest>;
