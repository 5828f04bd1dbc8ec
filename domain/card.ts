import { z } from 'zod';
import { ApiError } from './api-error.ts';

/** Why a card that was accepted could not be issued (docs/partners/cards.md). */
export const CardFailureCode = z.enum(['provider_declined', 'issuance_failed', 'operator_failed']).meta({
  id: 'CardFailureCode',
  description:
    '`provider_declined`: the card network declined the request. `issuance_failed`: the card network accepted the request and ' +
    'then could not issue the card. `operator_failed`: the card network never told us the outcome, and we confirmed with it ' +
    'that there is no card.',
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

/** What the network tells us about an issued card, limited to what we may store. */
export interface NetworkCard {
  networkCardId: string;
  last4: string;
  expMonth: number;
  expYear: number;
}

/**
 * {@link NetworkCard} as far as it is known: an operator who confirms that a card was issued gives only its
 * id.
 */
export type IssuedCard = Pick<NetworkCard, 'networkCardId'> & {
  [Field in Exclude<keyof NetworkCard, 'networkCardId'>]: NetworkCard[Field] | null;
};

/**
 * The product a card is issued from (docs/partners/products.md): the requested one, or the current one, which
 * comes first in `products`.
 * @throws ApiError `no_product_configured` if the account can issue none, `product_not_allowed` if it can't
 * issue the requested one.
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
