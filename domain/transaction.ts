import { z } from 'zod';

export const TransactionType = z.enum(['purchase', 'decline', 'refund']).meta({
  id: 'TransactionType',
  description:
    '`purchase`: the amount left the card. `decline`: no money moved, apart from the fee. `refund`: the amount came back.',
});
export type TransactionType = z.infer<typeof TransactionType>;

export const DeclineReason = z
  .enum([
    'insufficient_card_balance',
    'card_frozen',
    'card_blocked',
    'declined_by_network',
    'simulated_decline',
  ])
  .meta({
    id: 'DeclineReason',
    description:
      '`insufficient_card_balance`: the card held less than the purchase. `card_frozen`, `card_blocked`: the status of ' +
      'the card at the time. `declined_by_network`: the card network declined. `simulated_decline`: you asked for a ' +
      'decline.',
  });
export type DeclineReason = z.infer<typeof DeclineReason>;

/** Whose money it is about: the card's, or, for what reaches a blocked card, the prepaid balance. */
export const ChargedTo = z.enum(['card', 'partner_balance']).meta({
  id: 'ChargedTo',
  description:
    'What the amount was taken from or returned to: the card, or your balance if the card was already blocked.',
});
export type ChargedTo = z.infer<typeof ChargedTo>;
