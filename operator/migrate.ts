import { createFirstProduct } from '../commands/products/products.ts';
import { readMigrationConfig } from '../config/service.ts';
import { OPERATOR_ROLE } from '../db/login.ts';
import { migrate } from '../db/migrate.ts';
import { openOrm } from '../db/orm.ts';
import { OPERATOR_LIMITS } from '../db/session.ts';
import { runOnce } from '../process/run-process.ts';

await runOnce('migration', async () => {
  const { databaseUrl, firstProduct } = readMigrationConfig();
  const applied = await migrate(databaseUrl);
  console.log(applied.length === 0 ? 'The database is up to date.' : `Applied ${applied.join(', ')}.`);
  if (firstProduct === null) return;
  const orm = await openOrm({
    databaseUrl,
    poolSize: 1,
    limits: OPERATOR_LIMITS,
    role: OPERATOR_ROLE,
    onOwnerLogin: () => {},
  });
  try {
    const created = await createFirstProduct({ orm, actor: 'migrate' }, firstProduct);
    if (created) console.log(`Product ${firstProduct.code} is the current one.`);
  } finally {
    await orm.close();
  }
});
