import { createFirstProduct } from '../commands/set-current-product.ts';
import { readMigrationConfig } from '../config.ts';
import { runOnce } from '../run-process.ts';
import { OPERATOR_ROLE } from './login.ts';
import { migrate } from './migrate.ts';
import { openOrm } from './orm.ts';
import { OPERATOR_LIMITS } from './session.ts';

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
