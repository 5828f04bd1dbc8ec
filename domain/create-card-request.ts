import { z } from 'zod';
import { AmountCents, Label, Line } from './fields.ts';

/** partner-api.md, "POST /cards body". */
export const CreateCardRequest = z
  .strictObject({
    amount: AmountCents.describe('Cents to land on the card.'),
    external_ref: Line(255).describe('Your own id for the card, unique per account and mode.'),
    product_code: Line(100)
      .optional()
      .describe('A product from `GET /products`. Leave it out to get the current one.'),
    card_name: Label(255).optional().describe('Your label for the card.'),
    cardholder_first_name: Label(100).optional().describe("The cardholder's first name."),
    cardholder_last_name: Label(100).optional().describe("The cardholder's last name."),
    email: z
      .email({ error: 'must be a valid email address' })
      .max(254)
      .optional()
      .describe("The cardholder's email address."),
  })
  .meta({ id: 'CreateCardRequest', description: 'The card you want.' });
export type CreateCardRequest = z.infer<typeof CreateCardRequest>;
