import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { ApiError } from '../domain/api-error.ts';
import { coalesce } from '../process/coalesce.ts';
import { describeError } from '../process/describe-error.ts';
import { asService, untilAborted } from '../process/work-context.ts';
import { type DatabaseConfig, type Orm, openServiceDatabase } from './orm.ts';
import { query } from './sql.ts';

/** Reads a list with the database it is given; it must only read. */
export type ReadList = <T>(read: (orm: Orm) => Promise<T>) => Promise<T>;

/** How long lists wait for the replica to have what the primary had when they were asked for. */
const LONGEST_LAG_MS = 100;
const LOOK_EVERY_MS = 5;
/** How long a list waits for its rows, its account's turn included, before it asks the primary. */
const LONGEST_READ_MS = 1_000;
/** A replica that was not there, or too far behind, is tried again after this, by one list. */
const REST_MS = 2_000;

/**
 * Opens what lists are read from: the replica, if one is configured, or else the primary.
 * @throws SessionRefused if the replica can be reached, but not like this; see openOrm
 */
export async function openLists(
  config: DatabaseConfig & { readDatabaseUrl: string | null },
  primary: Orm,
  logger: Logger,
): Promise<{ read: ReadList; close(): Promise<void> }> {
  const { readDatabaseUrl: databaseUrl } = config;
  if (databaseUrl === null) return { read: (read) => read(primary), close: async () => {} };
  const { orm } = await openServiceDatabase({ ...config, databaseUrl, databaseDirectUrl: null }, logger, {
    poolSize: 15,
    // The service's own: asking how far it is.
    shares: { accounts: 12, eachAccount: 4 },
    applicationName: 'card-issuing-lists',
  });
  return { read: readListsFrom(orm, primary, logger), close: () => orm.close() };
}

/**
 * Has lists read from a replica that has everything that was committed when the list was asked for, by whichever process:
 * a partner finds in a list what it has just made. If the replica lags, is away or hangs, lists are read from the primary
 * (docs/decisions/lists-from-a-replica.md).
 */
export function readListsFrom(replica: Orm, primary: Orm, logger: Logger): ReadList {
  let isResting = false;
  let triedAtMs = 0;

  // Lists that arrive while one is asking go together next, so each asks after it has arrived.
  const catchUp = coalesce<null, boolean>({
    mostTogether: 10_000,
    async run(lists) {
      const caughtUp = await asService('read replica', () => hasCaughtUp(replica, primary));
      return lists.map(() => caughtUp);
    },
  });

  async function isFit(): Promise<boolean> {
    if (isResting && performance.now() < triedAtMs + REST_MS) return false;
    triedAtMs = performance.now();
    try {
      if (!(await catchUp(null))) return rest({ message: `it is more than ${LONGEST_LAG_MS} ms behind` });
    } catch (error) {
      return rest(describeError(error));
    }
    if (isResting) logger.info('lists are read from the replica again');
    isResting = false;
    return true;
  }

  function rest(why: object): false {
    if (!isResting) logger.warn({ why }, 'lists are read from the primary: the replica can not be used');
    isResting = true;
    return false;
  }

  return async (read) => {
    if (!(await isFit())) return read(primary);
    try {
      return await within(LONGEST_READ_MS, () => read(replica));
    } catch (error) {
      if (error instanceof ApiError) throw error;
      // Replay may have to cancel what reads a row that is gone.
      logger.warn({ error: describeError(error) }, 'a list is read from the primary: the replica failed');
      return read(primary);
    }
  };
}

/** Whether the replica has replayed what the primary has committed by now. It must be a standby of the same cluster. */
async function hasCaughtUp(replica: Orm, primary: Orm): Promise<boolean> {
  const [now] = await query<{ flushed: string; cluster: string }>(primary.em.fork(), NOW);
  for (const startedMs = performance.now(); performance.now() < startedMs + LONGEST_LAG_MS; ) {
    const [row] = await within(LONGEST_READ_MS, () =>
      query<{ reached: boolean }>(replica.em.fork(), REACHED, [now?.flushed, now?.cluster]),
    );
    if (row?.reached) return true;
    await sleep(LOOK_EVERY_MS);
  }
  return false;
}

const NOW = `SELECT pg_current_wal_flush_lsn()::text AS flushed, system_identifier::text AS cluster FROM pg_control_system()`;

const REACHED = `SELECT pg_is_in_recovery() AND pg_last_wal_replay_lsn() >= $1::pg_lsn AND system_identifier::text = $2 AS reached
  FROM pg_control_system()`;

/** @throws what `work` throws, or a TimeoutError; its connection is then ended. A server that hangs opens none in time. */
async function within<T>(mostMs: number, work: () => Promise<T>): Promise<T> {
  const signal = AbortSignal.timeout(mostMs);
  const tooLate = Promise.withResolvers<never>();
  const onAbort = () => tooLate.reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([untilAborted(signal, work), tooLate.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
