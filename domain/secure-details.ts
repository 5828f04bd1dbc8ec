import { z } from 'zod';

/** What a reveal answers (decisions.md, "Secure details"). Secret: it goes to the partner and nowhere else. */
export const SecureDetails = z
  .object({
    card_id: z.string().describe("The card's id."),
    pan: z.string().describe('The full card number.'),
    cvv: z.string().describe('The card verification value.'),
    exp_month: z.string().describe('The month in which the card expires, as `MM`.'),
    exp_year: z.string().describe('The year in which the card expires, as `YYYY`.'),
    cardholder_name: z
      .string()
      .nullable()
      .describe('The name on the card. Null if it was issued without one.'),
  })
  .meta({ id: 'SecureDetails', description: 'The sensitive details of a card. Do not store or log them.' });
export type SecureDetails = z.infer<typeof SecureDetails>;
