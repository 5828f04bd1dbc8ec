import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { ApiError } from '../../domain/api-error.ts';
import { coalesce } from '../process/coalesce.ts';
import { describeError } from '../process/describe-error.ts';
import { asService, untilAborted } from '../process/work-context.ts';
import { API_ROLE } from './login.ts';
import { type DatabaseConfig, type Orm, openServiceDatabase } from './orm.ts';
import { query } from './sql.ts';

/** Reads a list from the given database. It must only read. */
export type ReadList = <T>(read: (orm: Orm) => Promise<T>) => Promise<T>;

/**
 * How long a list waits for the replica to catch up with what the primary had when the list was requested.
 */
const MAX_LAG_MS = 100;
const LOOK_EVERY_MS = 5;
/** How long a list waits for its rows, including its account's turn, before it asks the primary. */
const MAX_READ_MS = 1_000;
/** After this time, one list tries a replica again that was down or too far behind. */
const REST_MS = 2_000;

/**
 * Opens the database that lists are read from: the replica, if one is configured, otherwise the primary.
 * @throws SessionRefused as openOrm
 */
export async function openLists(
  config: DatabaseConfig & { readDatabaseUrl: string | null },
  primary: Orm,
  logger: Logger,
): Promise<{ read: ReadList; isReplicaFit(): Promise<boolean>; close(): Promise<void> }> {
  const { readDatabaseUrl: databaseUrl } = config;
  if (databaseUrl === null)
    return { read: (read) => read(primary), isReplicaFit: async () => false, close: async () => {} };
  const { orm } = await openServiceDatabase({ ...config, databaseUrl, databaseDirectUrl: null }, logger, {
    role: API_ROLE,
    poolSize: 15,
    // The remaining connections are for the service itself, to ask how far the replica is.
    shares: { accounts: 12, eachAccount: 4 },
    applicationName: 'card-issuing-lists',
  });
  const replica = followReplica(orm, primary, logger);
  return {
    read: readListsFrom(orm, primary, logger, replica),
    isReplicaFit: replica.isFit,
    close: () => orm.close(),
  };
}

/**
 * Reads lists from a replica that has everything that any process had committed when the list was requested,
 * so that partners find in a list what they have just created. If the replica lags, is down or hangs, lists
 * are read from the primary (docs/decisions/lists-from-a-replica.md).
 */
export function readListsFrom(
  replica: Orm,
  primary: Orm,
  logger: Logger,
  { isFit } = followReplica(replica, primary, logger),
): ReadList {
  return async (read) => {
    if (!(await isFit())) return read(primary);
    try {
      return await within(MAX_READ_MS, () => read(replica));
    } catch (error) {
      if (error instanceof ApiError) throw error;
      // Replay may cancel a query that reads deleted rows.
      logger.warn({ error: describeError(error) }, 'a list is read from the primary: the replica failed');
      return read(primary);
    }
  };
}

/** @returns whether the replica has everything that was committed when it is called */
function followReplica(replica: Orm, primary: Orm, logger: Logger): { isFit(): Promise<boolean> } {
  let isResting = false;
  let triedAtMs = 0;

  // Lists that arrive during a check share the next one, so that every check starts after the list arrived.
  const catchUp = coalesce<null, boolean>({
    maxTogether: 10_000,
    async run(lists) {
      const caughtUp = await asService('read replica', () => hasCaughtUp(replica, primary));
      return lists.map(() => caughtUp);
    },
  });

  function rest(why: object): false {
    if (!isResting) logger.warn({ why }, 'lists are read from the primary: the replica can not be used');
    isResting = true;
    return false;
  }

  return {
    async isFit() {
      if (isResting && performance.now() < triedAtMs + REST_MS) return false;
      triedAtMs = performance.now();
      try {
        if (!(await catchUp(null))) return rest({ message: `it is more than ${MAX_LAG_MS} ms behind` });
      } catch (error) {
        return rest(describeError(error));
      }
      if (isResting) logger.info('lists are read from the replica again');
      isResting = false;
      return true;
    },
  };
}

/**
 * Whether the replica has replayed what the primary has committed by now. It must be a standby of the same
 * cluster.
 */
async function hasCaughtUp(replica: Orm, primary: Orm): Promise<boolean> {
  const [now] = await query<{ flushed: string; cluster: string }>(primary.em.fork(), NOW);
  for (const startedMs = performance.now(); performance.now() < startedMs + MAX_LAG_MS; ) {
    const [row] = await within(MAX_READ_MS, () =>
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

/** @throws what `work` throws, or a TimeoutError, in which case its connection is ended */
async function within<T>(maxMs: number, work: () => Promise<T>): Promise<T> {
  const signal = AbortSignal.timeout(maxMs);
  const tooLate = Promise.withResolvers<never>();
  const onAbort = () => tooLate.reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([untilAborted(signal, work), tooLate.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
