import { ApiError } from './api-error.ts';

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
