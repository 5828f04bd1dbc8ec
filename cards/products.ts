import type { EntityManager } from '@mikro-orm/postgresql';
import { sql } from 'kysely';
import { lockPartner } from '../accounts/partners.ts';
import { Refusal } from '../domain/refusal.ts';
import { writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import { type Operator, recordAudit } from '../requests/operator-context.ts';
import { PartnerProductEntity, type Product, ProductEntity } from './tables.ts';

interface NewCurrentProduct {
  code: string;
  bin: string;
  scheme: string;
  /** The card network's own reference of it, such as a card program; null for none. */
  issuerProduct?: string | null;
}

/**
 * Makes a product the platform's current one; creates it, or brings it back if it was retired. It takes
 * effect with the next request (docs/partners/products.md). Cards keep the product they were issued with.
 */
export function setCurrentProduct(
  { orm, actor }: Operator,
  { code, bin, scheme, issuerProduct = null }: NewCurrentProduct,
): Promise<void> {
  return transaction(orm, async (tx) => {
    await lockProducts(tx, {});
    await tx.nativeUpdate(ProductEntity, { isCurrent: true, code: { $ne: code } }, { isCurrent: false });
    await tx.upsert(
      ProductEntity,
      { code, bin, network: scheme, issuerProduct, isCurrent: true, retiredAt: null, createdAt: new Date() },
      { onConflictExcludeFields: ['createdAt'] },
    );
    const detail = { code, bin, network: scheme, issuerProduct };
    recordAudit(tx, { actor, action: 'product.set-current', subject: code, detail });
  });
}

/**
 * Creates the product that PRODUCT_CODE, PRODUCT_BIN and PRODUCT_NETWORK name, unless there is already one.
 */
export async function createFirstProduct(context: Operator, product: NewCurrentProduct): Promise<boolean> {
  if ((await context.orm.em.fork().count(ProductEntity)) > 0) return false;
  await setCurrentProduct(context, product);
  return true;
}

/**
 * Lets an account issue more products than the current one (docs/operator.md, "Products"); none of them if
 * one is refused.
 * @throws Refusal if there is no such account or product, or a product is retired.
 */
export function allowProducts(
  { orm, actor }: Operator,
  partnerId: string,
  productCodes: readonly string[],
): Promise<void> {
  return transaction(orm, async (tx) => {
    await lockPartner(tx, partnerId);
    await lockProducts(tx, {});
    for (const code of productCodes) {
      if ((await findProduct(tx, code)).retiredAt) {
        throw new Refusal(`${code} is retired: "operator product set-current ${code} …" brings it back.`);
      }
    }
    const allowed = await tx.find(PartnerProductEntity, { partnerId });
    const codes = [...new Set(productCodes)].filter(
      (code) => !allowed.some(({ productCode }) => productCode === code),
    );
    if (codes.length === 0) return;
    for (const productCode of codes) tx.create(PartnerProductEntity, { partnerId, productCode });
    recordAudit(tx, { actor, action: 'product.allow', subject: partnerId, detail: { codes } });
  });
}

/**
 * Stops the issuing of a product; its cards keep working. A product that is already retired does not change.
 * @throws Refusal if it is the current product, or there is no such product.
 */
export function retireProduct({ orm, actor }: Operator, code: string): Promise<void> {
  return transaction(orm, async (tx) => {
    await lockProducts(tx, {});
    const product = await findProduct(tx, code);
    if (product.isCurrent) {
      throw new Refusal(
        `${code} is the current product: make another one current first with ` +
          '"operator product set-current CODE --bin B --network N".',
      );
    }
    if (product.retiredAt) return;
    product.retiredAt = new Date();
    const detail = { bin: product.bin, network: product.network };
    recordAudit(tx, { actor, action: 'product.retire', subject: code, detail });
  });
}

/** Serialises changes of products, so that at most one is current, and that one is not retired. */
const lockProducts = writeStatement(() => sql`SELECT pg_advisory_xact_lock(hashtext('products'))`);

/** @throws Refusal if there is no such product. */
async function findProduct(tx: EntityManager, code: string): Promise<Product> {
  const product = await tx.findOne(ProductEntity, code);
  if (product === null) throw new Refusal(`There is no product ${code}: run "operator product list".`);
  return product;
}
