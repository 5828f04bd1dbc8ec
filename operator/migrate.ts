import { createFirstProduct } from '../cards/products.ts';
import { type MigrationConfig, readMigrationConfig } from '../platform/config/service.ts';
import { OPERATOR_ROLE } from '../platform/db/login.ts';
import { migrate, setAdjustmentLimit } from '../platform/db/migrate.ts';
import { openOrm } from '../platform/db/orm.ts';
import { OPERATOR_LIMITS } from '../platform/db/session.ts';
import { runOnce, StartRefused } from '../platform/process/run-process.ts';

await runOnce('migration', async () => {
  const config = readMigrationConfig();
  const { migrations, functions } = await migrate(config.databaseUrl);
  const applied = [...migrations, ...functions.map((name) => `${name}()`)];
  console.log(applied.length === 0 ? 'The database is up to date.' : `Applied ${applied.join(', ')}.`);
  await limitAdjustments(config);
  await createProduct(config);
  await prepareTemporal(config);
});

async function limitAdjustments({ databaseUrl, adjustmentApprovalCents }: MigrationConfig): Promise<void> {
  if (adjustmentApprovalCents === null) return;
  await setAdjustmentLimit(databaseUrl, adjustmentApprovalCents);
  console.log(`Adjustments above ${adjustmentApprovalCents} cents need two operators.`);
}

async function createProduct({ databaseUrl, firstProduct }: MigrationConfig): Promise<void> {
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
}

/**
 * Creates the namespace and its search attributes. If the credentials don't allow that, it prints what is
 * missing and what to do.
 */
async function prepareTemporal({ temporal }: MigrationConfig): Promise<void> {
  if (temporal === null) {
    console.log(
      'TEMPORAL_ADDRESS is not set, so Temporal was not prepared: each worker does that as it starts.',
    );
    return;
  }
  const { Connection } = await import('@temporalio/client');
  const { howToAdd, registerNamespace } = await import('../platform/temporal/namespace.ts');
  const { connectionOptions = {}, namespace = 'default' } = temporal;
  const connection = await Connection.connect({ ...connectionOptions, connectTimeout: '5s' }).catch(
    (error) => {
      throw new StartRefused(
        `The database is migrated, but Temporal does not respond at ${connectionOptions.address}: check that it is running ` +
          'and that TEMPORAL_ADDRESS and the TEMPORAL_TLS_… variables are right, then run this again. ' +
          `(${error instanceof Error ? error.message : error})`,
      );
    },
  );
  try {
    const { added, missing } = await registerNamespace(connection, namespace);
    if (missing.length > 0) console.log(howToAdd(namespace, missing));
    else if (added.length > 0) console.log(`Added ${added.join(', ')} to Temporal's namespace ${namespace}.`);
    else console.log(`Temporal's namespace ${namespace} is up to date.`);
  } finally {
    await connection.close();
  }
}
