import { z } from 'zod';
import { ProductBin, ProductCode, Text } from '../operator/flag-values.ts';
import { argument, flag, type Noun, needed, severalArguments, verb } from '../operator/verbs.ts';
import type { Orm } from '../platform/db/orm.ts';
import { readIssuableProducts } from './issuable-products.ts';
import { allowProducts, retireProduct, setCurrentProduct } from './products.ts';
import { ProductEntity } from './tables.ts';

const COLUMNS = 'product_code bin network issuer_product current created retired_at'.split(' ');
const CODE = argument('of the product', ProductCode);
const Reference = z
  .string()
  .regex(/^[\x21-\x7e]{1,200}$/, 'must be 1 to 200 printable ASCII characters without spaces');

export const productNoun: Noun = {
  list: verb({
    about: 'all products, newest first',
    examples: [''],
    run: async (_, { session }) => ({
      value: await readProducts(await session.orm()),
      columns: COLUMNS,
      note: 'Add one, or change its BIN, with "operator product set-current CODE --bin B --network N".',
    }),
  }),

  'set-current': verb({
    about:
      'make a product the default for every account, effective at once; creates or changes it if necessary',
    takes: {
      code: CODE,
      bin: needed('<bin>', '6 to 8 digits', ProductBin),
      network: needed('<network>', 'such as visa', Text(100)),
      issuerProduct: flag(
        '<ref>',
        "the issuer's own reference of it, such as its card program; none if left out",
        Reference,
      ),
    },
    examples: ['visa-virtual-usd --bin 424242 --network visa'],
    async run({ code, bin, network: scheme, issuerProduct }, { session }) {
      await setCurrentProduct(await session.operator(), { code, bin, scheme, issuerProduct });
      return { value: await readProduct(await session.orm(), code) };
    },
  }),

  allow: verb({
    about: 'let an account issue more products than the current one; shows all that it can issue',
    takes: {
      partner: argument('id of the partner'),
      code: severalArguments('of the products', ProductCode),
    },
    examples: ['prt_01k0… visa-travel-usd'],
    async run({ partner, code: codes }, { session }) {
      await allowProducts(await session.operator(), partner, codes);
      const orm = await session.orm();
      // The current one first: the same as in its GET /v1/products.
      const issuable = await readIssuableProducts(orm.em.fork(), partner);
      const products = await readProducts(orm);
      const value = issuable.flatMap(({ code }) => products.filter((one) => one.product_code === code));
      return { value, columns: COLUMNS };
    },
  }),

  retire: verb({
    about: 'stop issuing a product; existing cards keep working',
    takes: { code: CODE },
    examples: ['visa-virtual-usd'],
    async run({ code }, { session }) {
      await retireProduct(await session.operator(), code);
      return { value: await readProduct(await session.orm(), code) };
    },
  }),
};

/** Newest first. */
async function readProducts(orm: Orm) {
  const products = await orm.em
    .fork()
    .findAll(ProductEntity, { orderBy: { createdAt: 'desc', code: 'desc' } });
  return products.map((product) => ({
    object: 'product',
    product_code: product.code,
    bin: product.bin,
    network: product.network,
    issuer_product: product.issuerProduct ?? null,
    current: product.isCurrent,
    created: product.createdAt.toISOString(),
    retired_at: product.retiredAt?.toISOString() ?? null,
  }));
}

const readProduct = async (orm: Orm, code: string) =>
  (await readProducts(orm)).find(({ product_code }) => product_code === code) ?? {};
