import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

export const ProductEntity = defineEntity({
  name: 'Product',
  tableName: 'product',
  properties: {
    code: p.string().primary(),
    bin: p.string(),
    network: p.string(),
    isCurrent: p.boolean().default(false),
    retiredAt: p.datetime().nullable(),
    createdAt: p.datetime().onCreate(() => new Date()),
  },
});
export type Product = InferEntity<typeof ProductEntity>;
