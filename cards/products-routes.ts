import { z } from 'zod';
import { listEnvelope } from '../api/http/list-envelope.ts';
import { declare, resource } from '../api/http/route.ts';
import { exampleList } from '../api/openapi/examples.ts';
import type { Orm } from '../platform/db/orm.ts';
import { PRODUCT } from './examples.ts';
import { issuableIn, readIssuableProducts } from './issuable-products.ts';

const ProductResource = z
  .object({
    product_code: z.string().describe('Send this as `product_code` to issue a card with this product.'),
    bin: z.string().describe("The first digits of its cards' numbers."),
    network: z.string().describe('The card scheme, such as `visa`.'),
  })
  .meta({ id: 'Product', description: 'A card product.' });

const listProducts = declare({
  method: 'get',
  path: '/products',
  scope: null,
  operationId: 'products.list',
  summary: 'List products',
  description: 'The products your account can issue, the current one first.',
  responses: { 200: listEnvelope(ProductResource) },
  examples: { 200: exampleList(PRODUCT) },
});

export const products = resource(
  { listProducts },
  ({ orm, liveNetworkConfigured }: { orm: Orm; liveNetworkConfigured: boolean }) => ({
    async listProducts({ caller }) {
      const all = await readIssuableProducts(orm.em.fork(), caller.partnerId);
      const products = issuableIn(caller.mode, all, liveNetworkConfigured);
      const data = products.map(({ code, bin, scheme }) => ({ product_code: code, bin, network: scheme }));
      return { status: 200, body: { object: 'list', data, has_more: false, next_cursor: null } };
    },
  }),
);
