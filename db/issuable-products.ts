import type { Mode } from '../domain/mode.ts';

export interface Product {
  code: string;
  bin: string;
  network: string;
}

/**
 * SQL for the products an account may issue, the current one first, as one JSON array (decisions.md, "Products").
 * @param partnerId the SQL expression of the account's id.
 */
export const issuableProducts = (partnerId: string): string => `
  (SELECT coalesce(json_agg(json_build_object('code', d.code, 'bin', d.bin, 'network', d.network)
      ORDER BY d.is_current DESC, d.created_at, d.code), '[]')
    FROM product d
    WHERE d.retired_at IS NULL AND (d.is_current OR EXISTS (
      SELECT FROM partner_product a WHERE a.partner_id = ${partnerId} AND a.product_code = d.code)))`;

/** Live mode without a network can issue nothing (decisions.md, "Live mode with no network configured"). */
export function issuableIn(mode: Mode, products: Product[], liveNetworkConfigured: boolean): Product[] {
  return mode === 'live' && !liveNetworkConfigured ? [] : products;
}
