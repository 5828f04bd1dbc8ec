import { z } from 'zod';
import { ApiError } from './api-error.ts';

/** Why a card that was accepted could not be issued (decisions.md, "Resources"). */
export const CardFailureCode = z.enum(['provider_declined', 'issuance_failed', 'operator_failed']).meta({
  id: 'CardFailureCode',
  description:
    '`provider_declined`: the card network refused. `issuance_failed`: the card network accepted the card, then could ' +
    'not issue it. `operator_failed`: the card network never answered, and we found that there is no card.',
});
export type CardFailureCode = z.infer<typeof CardFailureCode>;

/** The name to emboss on a card; null if it has none. */
export function cardholderName(card: {
  cardholder_first_name: string | null;
  cardholder_last_name: string | null;
}): string | null {
  const names = [card.cardholder_first_name, card.cardholder_last_name].filter((part) => part !== null);
  return names.length === 0 ? null : names.join(' ');
}

/** What a network says of a card that it has issued, as far as we may keep it. */
export interface NetworkCard {
  networkCardId: string;
  last4: string;
  expMonth: number;
  expYear: number;
}

/** {@link NetworkCard}, or the part of it that is known: an operator who says that a card was issued may not know the rest. */
export type IssuedCard = { [Field in keyof NetworkCard]: NetworkCard[Field] | null };

/**
 * The product a card is issued from (partner-api.md, "POST /cards body"): the requested one, or the current one, which
 * comes first in `products`.
 * @throws ApiError `no_product_configured` where the account can issue none, `product_not_allowed` where it asked for
 * another.
 */
export function chooseProduct<P extends { code: string }>(
  products: readonly P[],
  requestedCode: string | undefined,
): P {
  const [current] = products;
  if (current === undefined) throw new ApiError('no_product_configured');
  if (requestedCode === undefined) return current;
  const requested = products.find((product) => product.code === requestedCode);
  if (requested === undefined) throw new ApiError('product_not_allowed');
  return requested;
}
