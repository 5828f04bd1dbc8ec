import { ProductEntity } from '../../db/entities/cards.ts';
import { transaction } from '../../db/transaction.ts';
import { type Operator, recordAudit } from '../accounts/operator-context.ts';
import { lockProducts } from './lock-products.ts';

export interface NewCurrentProduct {
  code: string;
  bin: string;
  network: string;
}

/**
 * Makes a product the platform's current one, creating it or bringing it back if need be; it takes effect with the next
 * request (partner-api.md, "Versioning"). Cards keep the product they were issued from.
 */
export function setCurrentProduct({ orm, actor }: Operator, product: NewCurrentProduct): Promise<void> {
  return transaction(orm, async (tx) => {
    await lockProducts(tx);
    await tx.nativeUpdate(
      ProductEntity,
      { isCurrent: true, code: { $ne: product.code } },
      { isCurrent: false },
    );
    await tx.upsert(
      ProductEntity,
      { ...product, isCurrent: true, retiredAt: null, createdAt: new Date() },
      {
        onConflictExcludeFields: ['createdAt'],
      },
    );
    recordAudit(tx, actor, 'product.set-current', product.code, { ...product });
  });
}

/** {@link setCurrentProduct} unless there is a product already: what PRODUCT_CODE and its like are for. */
export async function createFirstProduct(context: Operator, product: NewCurrentProduct): Promise<boolean> {
  if ((await context.orm.em.fork().count(ProductEntity)) > 0) return false;
  await setCurrentProduct(context, product);
  return true;
}
