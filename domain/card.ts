import { z } from 'zod';

/** Why a card that was accepted could not be issued (decisions.md, "Resources"). */
export const CardFailureCode = z.enum(['provider_declined', 'issuance_failed', 'operator_failed']).meta({
  id: 'CardFailureCode',
  description:
    '`provider_declined`: the card network refused. `issuance_failed`: the card network accepted the card, then could ' +
    'not issue it. `operator_failed`: the card network never answered, and we found that there is no card.',
});
export type CardFailureCode = z.infer<typeof CardFailureCode>;

/** What is embossed on a card: the names it was given, null where it was given none. */
export function cardholderName(card: {
  cardholder_first_name: string | null;
  cardholder_last_name: string | null;
}): string | null {
  const names = [card.cardholder_first_name, card.cardholder_last_name].filter((part) => part !== null);
  return names.length === 0 ? null : names.join(' ');
}
