import { IsolationLevel } from '@mikro-orm/core';
import type { Logger } from 'pino';
import { inTransaction } from '../process/work-context.ts';
import { API_ROLE } from './login.ts';
import { type DatabaseConfig, type Orm, type OrmOptions, openOrm } from './orm.ts';
import { openLists } from './read-replica.ts';
import { query, type Reader } from './sql.ts';

/**
 * Added to the time that a reader may pause. After that, PostgreSQL ends the transaction of a process that
 * hangs.
 */
const IDLE_MARGIN_MS = 10_000;
/** How many reports a process reads at a time, of all accounts and of one. */
const PLACES = { accounts: 8, eachAccount: 2 };
/** How long the running reports are watched for the slowest one. The pool lets a report wait for 4 s. */
const WATCHED_MS = 3_000;
/** A report that is taken more slowly than this has to give way. */
const SLOW_BYTES_PER_SECOND = 50_000;

/** A report that is being read, and what others need to know about it. */
interface ReportReading {
  /** How long it may pause between two statements. */
  maxIdleMs: number;
  /** How much its client has taken so far. */
  sentBytes: number;
  /** Ends it, because it is slow and another account waits for its place. */
  giveWay(): void;
}

/** Runs `read` in one snapshot of the database that reports are read from. */
export type ReadReport = (reading: ReportReading, read: (em: Reader) => Promise<void>) => Promise<void>;

type ReadsConfig = DatabaseConfig & { readDatabaseUrl: string | null };

/** Opens what lists and reports are read from. @throws SessionRefused as openOrm */
export async function openReads(config: ReadsConfig, primary: Orm, logger: Logger) {
  const lists = await openLists(config, primary, logger);
  return { lists, reportReads: await openReportReads(config, lists.isReplicaFit) };
}

/**
 * Opens connections for reports alone, so that a report that is read slowly takes none from anything else
 * (docs/decisions/reports-are-streamed.md).
 * @param isReplicaFit whether the replica has everything that was committed before
 */
async function openReportReads(
  config: ReadsConfig,
  isReplicaFit: () => Promise<boolean>,
): Promise<{ read: ReadReport; close(): Promise<void> }> {
  const { databaseUrl, databaseDirectUrl, readDatabaseUrl, allowOwnerLogin } = config;
  const options: Omit<OrmOptions, 'databaseUrl'> = {
    role: API_ROLE,
    poolSize: 10,
    // The remaining connections are for the check when the process starts.
    shares: PLACES,
    applicationName: 'card-issuing-reports',
    // The process's other connections warn of these.
    onOwnerLogin: allowOwnerLogin ? () => {} : undefined,
    onSharedLogin: () => {},
  };
  const [primary, standby] = await Promise.all([
    openOrm({ ...options, databaseUrl, pooled: databaseDirectUrl !== null }),
    readDatabaseUrl && openOrm({ ...options, databaseUrl: readDatabaseUrl }),
  ]);
  const replica = standby || primary;
  const running = new Set<ReportReading>();
  return {
    async read(reading, read) {
      let hasBegun = false;
      const watch = running.size < PLACES.accounts ? undefined : makeRoom(running);
      const begin = (em: Reader) => {
        hasBegun = true;
        clearTimeout(watch);
        running.add(reading);
        return read(em);
      };
      try {
        if (replica !== primary && (await isReplicaFit())) {
          try {
            return await inSnapshot(replica, reading.maxIdleMs, begin);
          } catch (error) {
            if (hasBegun) throw error;
          }
        }
        await inSnapshot(primary, reading.maxIdleMs, begin);
      } finally {
        clearTimeout(watch);
        running.delete(reading);
      }
    },
    close: async () => {
      await primary.close();
      if (replica !== primary) await replica.close();
    },
  };
}

/** Watches the running reports for {@link WATCHED_MS}. Then the slowest of them gives way, if it is slow. */
function makeRoom(running: Set<ReportReading>): NodeJS.Timeout {
  const before = [...running].map((reading) => ({ reading, bytes: reading.sentBytes }));
  return setTimeout(() => {
    const [slowest] = before
      .filter(({ reading }) => running.has(reading))
      .map(({ reading, bytes }) => ({ reading, bytes: reading.sentBytes - bytes }))
      .toSorted((a, b) => a.bytes - b.bytes);
    if (slowest === undefined || slowest.bytes >= (SLOW_BYTES_PER_SECOND * WATCHED_MS) / 1_000) return;
    // Whoever waits beside this one has another report give way.
    running.delete(slowest.reading);
    slowest.reading.giveWay();
  }, WATCHED_MS);
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
