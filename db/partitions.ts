import { setTimeout as sleep } from 'node:timers/promises';
import { isLockTimeout } from './is-retryable.ts';
import type { Orm } from './orm.ts';
import { query } from './sql.ts';

const ATTEMPTS = 20;
/** In which those who waited behind it have their turn. */
const PAUSE_MS = 500;

/**
 * Makes the partitions that the coming weeks and the coming year need (docs/decisions/time-partitions.md). Several
 * processes may do it at once.
 * @returns the names of those it made
 * @throws Error if a table could not be locked, each time for a tenth of a second; what was made stays
 */
export const makePartitions = (orm: Orm, stopping?: AbortSignal): Promise<string[]> =>
  untilDone(orm, 'SELECT make_partition() AS name', stopping);

/**
 * Drops the weeks of events that are older than 30 days and have no delivery any more.
 * @returns what the dropped partitions' names end with
 * @throws Error as {@link makePartitions}
 */
export const dropOldEvents = (orm: Orm, stopping?: AbortSignal): Promise<string[]> =>
  untilDone(orm, 'SELECT drop_old_events() AS name', stopping);

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
