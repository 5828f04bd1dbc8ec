import { type Product, ProductEntity } from '../../db/entities/cards.ts';
import { issuableProducts } from '../../db/issuable-products.ts';
import type { Orm } from '../../db/orm.ts';
import { query } from '../../db/sql.ts';

export interface ProductResource {
  object: 'product';
  product_code: string;
  bin: string;
  network: string;
  current: boolean;
  created: string;
  retired_at: string | null;
}

/** Newest first. */
export async function readProducts(orm: Orm): Promise<ProductResource[]> {
  const products = await orm.em
    .fork()
    .findAll(ProductEntity, { orderBy: { createdAt: 'desc', code: 'desc' } });
  return products.map(presentProduct);
}

export async function readProduct(orm: Orm, code: string): Promise<ProductResource> {
  return presentProduct(await orm.em.fork().findOneOrFail(ProductEntity, code));
}

/** What an account may issue, the current product first, as it finds them in GET /products. */
export async function readAllowedProducts(orm: Orm, partnerId: string): Promise<ProductResource[]> {
  const [row] = await query<{ products: { code: string }[] }>(
    orm.em.fork(),
    `SELECT ${issuableProducts('$1')} AS products`,
    [partnerId],
  );
  const codes = (row?.products ?? []).map(({ code }) => code);
  const products = await readProducts(orm);
  return codes.flatMap((code) => products.filter((product) => product.product_code === code));
}

function presentProduct(product: Product): ProductResource {
  return {
    object: 'product',
    product_code: product.code,
    bin: product.bin,
    network: product.network,
    current: product.isCurrent,
    created: product.createdAt.toISOString(),
    retired_at: product.retiredAt?.toISOString() ?? null,
  };
}
