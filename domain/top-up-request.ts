import { z } from 'zod';
import { AmountCents } from './fields.ts';

/** Body of POST /cards/{cardId}/topups. */
export const TopUpRequest = z
  .strictObject({
    amount: AmountCents.describe('Cents to land on the card.'),
  })
  .meta({ id: 'CreateTopupRequest', description: 'How much you want to add to the card.' });
export type TopUpRequest = z.infer<typeof TopUpRequest>;
