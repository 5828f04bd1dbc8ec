import { setTimeout as sleep } from 'node:timers/promises';
import { isLockTimeout } from './is-retryable.ts';
import type { Orm } from './orm.ts';
import { query } from './sql.ts';

const ATTEMPTS = 20;
/** The pause in which the sessions that waited behind the lock can proceed. */
const PAUSE_MS = 500;

/**
 * Creates the partitions for the coming weeks and the coming year (docs/decisions/time-partitions.md).
 * Several processes may do this at once.
 * @returns the names of the new partitions
 * @throws Error if a table could not be locked within a tenth of a second, repeatedly; partitions that were
 * created stay
 */
export const makePartitions = (orm: Orm, stopping?: AbortSignal): Promise<string[]> =>
  untilDone(orm, 'SELECT make_partition() AS name', stopping);

/**
 * Drops the weeks of events that are older than 30 days and have no deliveries left.
 * @returns the suffixes of the dropped partitions' names
 * @throws Error as {@link makePartitions}
 */
export const dropOldEvents = (orm: Orm, stopping?: AbortSignal): Promise<string[]> =>
  untilDone(orm, 'SELECT drop_old_events() AS name', stopping);

/**
 * Drops the days of the log of requests that are older than 7 days.
 * @returns the names of the dropped partitions
 * @throws Error as {@link makePartitions}
 */
export const dropOldRequests = (orm: Orm, stopping?: AbortSignal): Promise<string[]> =>
  untilDone(orm, 'SELECT drop_old_requests() AS name', stopping);

/** Each call is a transaction with short locks. Until it has nothing left to do, or the process stops. */
async function untilDone(orm: Orm, call: string, stopping?: AbortSignal): Promise<string[]> {
  const done: string[] = [];
  for (let attempt = 1; !stopping?.aborted; ) {
    try {
      const [row] = await query<{ name: string | null }>(orm.em.fork(), call);
      if (!row?.name) break;
      done.push(row.name);
      attempt = 1;
    } catch (error) {
      if (!isLockTimeout(error) || attempt === ATTEMPTS) throw error;
      attempt += 1;
      await sleep(PAUSE_MS);
    }
  }
  return done;
}
