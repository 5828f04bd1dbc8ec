import { IsolationLevel } from '@mikro-orm/core';
import { inTransaction } from '../process/work-context.ts';
import { API_ROLE } from './login.ts';
import { type DatabaseConfig, type Orm, type OrmOptions, openOrm } from './orm.ts';
import { query, type Reader } from './sql.ts';

/** Added to the time that a reader may pause. After that, PostgreSQL ends the transaction of a process that hangs. */
const IDLE_MARGIN_MS = 10_000;

/**
 * Runs `read` in one snapshot of the database that reports are read from.
 * @param maxIdleMs how long `read` may pause between two statements
 */
export type ReadReport = (maxIdleMs: number, read: (em: Reader) => Promise<void>) => Promise<void>;

/**
 * Opens connections for reports alone, so that a report that is read slowly takes none from anything else
 * (docs/decisions/reports-are-streamed.md).
 * @param isReplicaFit whether the replica has everything that was committed before
 * @throws SessionRefused as openOrm
 */
export async function openReportReads(
  config: DatabaseConfig & { readDatabaseUrl: string | null },
  isReplicaFit: () => Promise<boolean>,
): Promise<{ read: ReadReport; close(): Promise<void> }> {
  const { databaseUrl, databaseDirectUrl, readDatabaseUrl, allowOwnerLogin } = config;
  const options: Omit<OrmOptions, 'databaseUrl'> = {
    role: API_ROLE,
    poolSize: 10,
    // The remaining connections are for the check when the process starts.
    shares: { accounts: 8, eachAccount: 2 },
    applicationName: 'card-issuing-reports',
    // The process's other connections warn of these.
    onOwnerLogin: allowOwnerLogin ? () => {} : undefined,
    onSharedLogin: () => {},
  };
  const primary = await openOrm({ ...options, databaseUrl, pooled: databaseDirectUrl !== null });
  const replica =
    readDatabaseUrl === null ? primary : await openOrm({ ...options, databaseUrl: readDatabaseUrl });
  return {
    async read(maxIdleMs, read) {
      let hasBegun = false;
      const begin = (em: Reader) => {
        hasBegun = true;
        return read(em);
      };
      if (replica !== primary && (await isReplicaFit())) {
        try {
          return await inSnapshot(replica, maxIdleMs, begin);
        } catch (error) {
          if (hasBegun) throw error;
        }
      }
      await inSnapshot(primary, maxIdleMs, begin);
    },
    close: async () => {
      await primary.close();
      if (replica !== primary) await replica.close();
    },
  };
}

async function inSnapshot(orm: Orm, maxIdleMs: number, read: (em: Reader) => Promise<void>): Promise<void> {
  await orm.em.fork().transactional(
    (em) =>
      inTransaction(async () => {
        await query(em, "SELECT set_config('idle_in_transaction_session_timeout', $1, true)", [
          `${maxIdleMs + IDLE_MARGIN_MS}ms`,
        ]);
        await read(em);
      }),
    { isolationLevel: IsolationLevel.REPEATABLE_READ, readOnly: true },
  );
}
