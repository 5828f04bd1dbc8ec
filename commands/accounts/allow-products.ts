import { ProductEntity } from '../../db/entities/cards.ts';
import { query } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import { Refusal } from '../idempotency/refusal.ts';
import { lockProducts } from '../products/lock-products.ts';
import { unknownProduct } from '../products/unknown-product.ts';
import { lockPartner } from './lock-partner.ts';
import { type Operator, recordAudit } from './operator-context.ts';

/**
 * Lets an account issue further products beside the current one (decisions.md, "Products"): all of them or, where one
 * is refused, none. What it may issue already stays as it is.
 * @throws Refusal where there is no such account or product, or a product is retired.
 */
export function allowProducts(
  { orm, actor }: Operator,
  partnerId: string,
  codes: readonly string[],
): Promise<void> {
  return transaction(orm, async (tx) => {
    await lockPartner(tx, partnerId);
    await lockProducts(tx);
    for (const code of codes) {
      const product = await tx.findOne(ProductEntity, code);
      if (product === null) throw unknownProduct(code);
      if (product.retiredAt) {
        throw new Refusal(`${code} is retired: "operator product set-current ${code} …" brings it back.`);
      }
    }
    const added = await query<{ product_code: string }>(
      tx,
      `INSERT INTO partner_product (partner_id, product_code) SELECT $1, unnest($2::text[])
       ON CONFLICT DO NOTHING RETURNING product_code`,
      [partnerId, codes],
    );
    if (added.length === 0) return;
    recordAudit(tx, actor, 'product.allow', partnerId, { codes: added.map((row) => row.product_code) });
  });
}
