import type { EntityManager } from '@mikro-orm/postgresql';
import { query } from '../../db/sql.ts';

/** Puts changes of products one after the other: there is one current product at any time, and it is not retired. */
export async function lockProducts(tx: EntityManager): Promise<void> {
  await query(tx, `SELECT pg_advisory_xact_lock(hashtext('products'))`);
}
