import { ProductEntity } from '../../db/entities/cards.ts';
import { transaction } from '../../db/transaction.ts';
import { type Operator, recordAudit } from '../accounts/operator-context.ts';
import { Refusal } from '../idempotency/refusal.ts';
import { lockProducts } from './lock-products.ts';
import { unknownProduct } from './unknown-product.ts';

/**
 * Ends the issuing of a product; its cards go on. One that is retired already stays as it is.
 * @throws Refusal for the current product, and where there is none.
 */
export function retireProduct({ orm, actor }: Operator, code: string): Promise<void> {
  return transaction(orm, async (tx) => {
    await lockProducts(tx);
    const product = await tx.findOne(ProductEntity, code);
    if (product === null) throw unknownProduct(code);
    if (product.isCurrent) {
      throw new Refusal(
        `${code} is the current product: make another one current first with ` +
          '"operator product set-current CODE --bin B --network N".',
      );
    }
    if (product.retiredAt) return;
    product.retiredAt = new Date();
    recordAudit(tx, actor, 'product.retire', code, { bin: product.bin, network: product.network });
  });
}
