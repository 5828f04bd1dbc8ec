import type { Command } from 'commander';
import { z } from 'zod';
import { ProductBin, ProductCode, read, readEach, Text } from '../operator/flag-values.ts';
import type { Verbs } from '../operator/verbs.ts';
import type { Orm } from '../platform/db/orm.ts';
import { readIssuableProducts } from './issuable-products.ts';
import { allowProducts, retireProduct, setCurrentProduct } from './products.ts';
import { type Product, ProductEntity } from './tables.ts';

const COLUMNS = ['product_code', 'bin', 'network', 'issuer_product', 'current', 'created', 'retired_at'];

export function productNoun(product: Command, { session, verb, examples }: Verbs): void {
  product.addHelpText('after', examples('product list'));

  product
    .command('list')
    .description('all products, newest first')
    .addHelpText('after', examples('product list'))
    .action(
      verb(async () => ({
        value: await readProducts(await session.orm()),
        columns: COLUMNS,
        note: 'Add one, or change its BIN, with "operator product set-current CODE --bin B --network N".',
      })),
    );

  product
    .command('set-current')
    .description(
      'make a product the default for every account, effective at once; creates or changes it if necessary',
    )
    .argument('<code>', 'of the product', read(ProductCode))
    .requiredOption('--bin <bin>', '6 to 8 digits', read(ProductBin))
    .requiredOption('--network <network>', 'such as visa', read(Text(100)))
    .option(
      '--issuer-product <ref>',
      "the issuer's own reference of it, such as its card program; none if left out",
      read(Reference),
    )
    .addHelpText('after', examples('product set-current visa-virtual-usd --bin 424242 --network visa'))
    .action(
      verb(async (code: string, { bin, network: scheme, issuerProduct = null }: CurrentFlags) => {
        await setCurrentProduct(await session.operator(), { code, bin, scheme, issuerProduct });
        return { value: await readProduct(await session.orm(), code) };
      }),
    );

  product
    .command('allow')
    .description('let an account issue more products than the current one; shows all that it can issue')
    .argument('<partner>', 'id of the partner')
    .argument('<code...>', 'of the products', readEach(ProductCode))
    .addHelpText('after', examples('product allow prt_01k0… visa-travel-usd'))
    .action(
      verb(async (partnerId: string, codes: string[]) => {
        await allowProducts(await session.operator(), partnerId, codes);
        return { value: await readAllowedProducts(await session.orm(), partnerId), columns: COLUMNS };
      }),
    );

  product
    .command('retire')
    .description('stop issuing a product; existing cards keep working')
    .argument('<code>', 'of the product', read(ProductCode))
    .addHelpText('after', examples('product retire visa-virtual-usd'))
    .action(
      verb(async (code: string) => {
        await retireProduct(await session.operator(), code);
        return { value: await readProduct(await session.orm(), code) };
      }),
    );
}

const Reference = z
  .string()
  .regex(/^[\x21-\x7e]{1,200}$/, 'must be 1 to 200 printable ASCII characters without spaces');

interface CurrentFlags {
  bin: string;
  network: string;
  issuerProduct?: string | null;
}

interface ProductResource {
  object: 'product';
  product_code: string;
  bin: string;
  network: string;
  issuer_product: string | null;
  current: boolean;
  created: string;
  retired_at: string | null;
}

/** Newest first. */
async function readProducts(orm: Orm): Promise<ProductResource[]> {
  const products = await orm.em
    .fork()
    .findAll(ProductEntity, { orderBy: { createdAt: 'desc', code: 'desc' } });
  return products.map(presentProduct);
}

async function readProduct(orm: Orm, code: string): Promise<ProductResource> {
  return presentProduct(await orm.em.fork().findOneOrFail(ProductEntity, code));
}

/** The products an account can issue, the current one first: the same as in its GET /v1/products. */
async function readAllowedProducts(orm: Orm, partnerId: string): Promise<ProductResource[]> {
  const issuable = await readIssuableProducts(orm.em.fork(), partnerId);
  const products = await readProducts(orm);
  return issuable.flatMap(({ code }) => products.filter((product) => product.product_code === code));
}

function presentProduct(product: Product): ProductResource {
  return {
    object: 'product',
    product_code: product.code,
    bin: product.bin,
    network: product.network,
    issuer_product: product.issuerProduct ?? null,
    current: product.isCurrent,
    created: product.createdAt.toISOString(),
    retired_at: product.retiredAt?.toISOString() ?? null,
  };
}
