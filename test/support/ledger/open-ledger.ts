import { SERVICE_ROLE } from '../../../platform/db/login.ts';
import { type Orm, openOrm } from '../../../platform/db/orm.ts';
import type { Transactor } from '../../../platform/db/sql.ts';
import { connectTo, createTestDatabase, ownerUrlOf } from '../postgres.ts';

/** A fork whose calls are each a transaction of their own, unless it begins one. */
export const forkOf = (orm: Orm): Transactor => orm.em.fork() as Transactor;

/** A fresh migrated database, or the one the URL names. */
export async function openLedger(options: { poolSize?: number; databaseUrl?: string } = {}) {
  const databaseUrl = options.databaseUrl ?? (await createTestDatabase());
  const owner = await connectTo(ownerUrlOf(databaseUrl));
  // Several operations in one transaction do deadlock; nobody here need wait a second to find out.
  await owner.query(`DO $$ BEGIN
    EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = ''5ms''', current_database());
  END $$`);
  const orm = await openOrm({
    ...{ databaseUrl: ownerUrlOf(databaseUrl), poolSize: options.poolSize ?? 4 },
    ...{ role: SERVICE_ROLE, onOwnerLogin: () => {}, applicationName: 'ledger-test' },
    // Who waits for a lock waits as long as the test needs to hold it.
    limits: { lockMs: 120_000, idleInTransactionMs: 120_000, statementMs: 0 },
  });
  return {
    orm,
    /** A fork without a transaction, as the application's role. Its login is the owner's, who may post every code. */
    em: forkOf(orm),
    owner,
    databaseUrl,
    async close() {
      await owner.end();
      await orm.close();
    },
  };
}

export type TestLedger = Awaited<ReturnType<typeof openLedger>>;
