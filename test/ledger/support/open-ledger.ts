import type { EntityManager } from '@mikro-orm/postgresql';
import pg from 'pg';
import { type Orm, openOrm } from '../../../db/orm.ts';
import { createTestDatabase } from '../../support/postgres.ts';

export interface TestLedger {
  orm: Orm;
  /** A fork without a transaction, as the application's role. */
  em: EntityManager;
  /** One connection as the owner of the tables, a superuser. */
  owner: pg.Client;
  databaseUrl: string;
  close(): Promise<void>;
}

/** A fresh migrated database, or the one the URL names. */
export async function openLedger(
  options: { poolSize?: number; databaseUrl?: string } = {},
): Promise<TestLedger> {
  const databaseUrl = options.databaseUrl ?? (await createTestDatabase());
  const orm = await openOrm({ databaseUrl, poolSize: options.poolSize ?? 4, applicationName: 'ledger-test' });
  const owner = new pg.Client(databaseUrl);
  await owner.connect();
  return {
    orm,
    em: orm.em.fork(),
    owner,
    databaseUrl,
    async close() {
      await owner.end();
      await orm.close();
    },
  };
}
