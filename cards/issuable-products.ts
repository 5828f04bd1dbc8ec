import { type RawBuilder, sql } from 'kysely';
import type { Mode } from '../domain/mode.ts';
import { type Reader, readStatement } from '../platform/db/sql.ts';

export interface IssuableProduct {
  code: string;
  bin: string;
  scheme: string;
  /** The card network's own reference of it; null if it has none. */
  issuerProduct: string | null;
}

/** The products that an account can issue, the current one first (docs/partners/products.md). */
export async function readIssuableProducts(em: Reader, partnerId: string): Promise<IssuableProduct[]> {
  const [row] = await selectProducts(em, { partnerId });
  return row?.products ?? [];
}

const selectProducts = readStatement(
  (_, { partnerId }: { partnerId: string }) =>
    sql<{ products: IssuableProduct[] }>`SELECT ${issuableProducts(partnerId)} AS products`,
);

/**
 * The same as a subquery, for a statement that reads more.
 * @param partnerId a value, or a column of a table that is not named `issuable` or `allowed`
 */
export function issuableProducts(partnerId: unknown): RawBuilder<IssuableProduct[]> {
  return sql`
    (SELECT coalesce(json_agg(json_build_object('code', issuable.code, 'bin', issuable.bin, 'scheme', issuable.network,
        'issuerProduct', issuable.issuer_product)
        ORDER BY issuable.is_current DESC, issuable.created_at, issuable.code), '[]')
      FROM product issuable
      WHERE issuable.retired_at IS NULL AND (issuable.is_current OR EXISTS (
        SELECT FROM partner_product allowed
        WHERE allowed.partner_id = ${partnerId} AND allowed.product_code = issuable.code)))`;
}

/** Live mode can issue nothing without a network (CARD_NETWORK in docs/operating.md). */
export function issuableIn(
  mode: Mode,
  products: IssuableProduct[],
  liveNetworkConfigured: boolean,
): IssuableProduct[] {
  return mode === 'live' && !liveNetworkConfigured ? [] : products;
}
