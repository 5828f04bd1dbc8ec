import { z } from 'zod';

/** What a reveal answers (decisions.md, "Secure details"). Secret: it goes to the partner and nowhere else. */
export const SecureDetails = z.object({
  card_id: z.string(),
  pan: z.string().meta({ description: 'The full card number.' }),
  cvv: z.string(),
  exp_month: z.string().meta({ description: 'MM' }),
  exp_year: z.string().meta({ description: 'YYYY' }),
  cardholder_name: z.string().nullable(),
});
export type SecureDetails = z.infer<typeof SecureDetails>;
