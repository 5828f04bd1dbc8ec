import { setCurrentProduct } from '../../cards/products.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { createTestDatabase, openOperatorOrm } from '../../test/support/postgres.ts';

/** A database of its own for a measurement that calls our functions itself, without a service. */
export async function openBenchDatabase() {
  console.log('PostgreSQL alone, no Temporal');
  const databaseUrl = await createTestDatabase();
  const operator = { orm: await openOperatorOrm(databaseUrl), actor: 'bench' };
  await setCurrentProduct(operator, { code: 'BENCH', bin: '424242', scheme: 'visa' });
  return { databaseUrl, operator };
}

/** @throws Error unless the ledger is right */
export async function requireSoundLedger(orm: Orm): Promise<void> {
  const violations = await checkLedger(orm.em.fork());
  if (violations.length > 0) throw new Error(`the ledger is wrong: ${JSON.stringify(violations[0])}`);
}
