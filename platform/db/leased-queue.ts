import { type RawBuilder, sql } from 'kysely';
import type { Tables } from './entities.ts';
import { passedTimes } from './has-passed.ts';

// A table with something to do in each row. `retry_after` says from when on, and `attempts` how often it was
// taken. Taking a row moves `retry_after` to the end of a lease, so nobody else takes it meanwhile, and what
// a process that died had taken is due again then. Two may have a row at once, if the work takes longer than the
// lease or the database's clock is set: what they do with it has to bear that.

type QueueTable = {
  [Name in keyof Tables]: Tables[Name] extends { retry_after: unknown; attempts: unknown } ? Name : never;
}[keyof Tables];

/**
 * Takes rows that are due, those that have waited longest first. `q` is the row, in `isWaiting` and `taken`.
 * @param queue.isWaiting the condition of the queue's index, and what else a row waits for
 * @param queue.leaseMs how long nobody else takes them
 * @param queue.longestMs how long they are put off at most, leases included
 * @param queue.taken the columns to return
 */
export const takeDue = <Taken>(
  table: QueueTable,
  queue: {
    isWaiting: RawBuilder<unknown>;
    leaseMs: RawBuilder<number>;
    longestMs: number;
    taken: RawBuilder<Taken>;
    limit: number;
  },
): RawBuilder<Taken> => sql<Taken>`
  UPDATE ${sql.table(table)} q
  SET attempts = q.attempts + 1, retry_after = now() + ${queue.leaseMs} * interval '1 millisecond'
  FROM (
    SELECT next.id FROM ${passedTimes(queue.longestMs)} CROSS JOIN LATERAL (
      SELECT q.id FROM ${sql.table(table)} q
      WHERE q.retry_after BETWEEN time.earliest AND time.latest AND ${queue.isWaiting}
      ORDER BY q.retry_after, q.id LIMIT ${queue.limit} FOR NO KEY UPDATE OF q SKIP LOCKED) next
    LIMIT ${queue.limit}
  ) due
  WHERE q.id = due.id RETURNING ${queue.taken}`;

/** How long a row rests after this attempt: twice as long each time, from two seconds on. */
export const backoffMs = (attempts: number, longestMs: number): number =>
  Math.min(1_000 * 2 ** Math.min(attempts, 20), longestMs);

/** Takes rows and handles them side by side, until fewer are due than it asks for. */
export async function workOff<Taken>(
  stopping: AbortSignal,
  limit: number,
  take: (limit: number) => Promise<Taken[]>,
  handle: (taken: Taken) => Promise<void>,
): Promise<void> {
  for (let taken = limit; taken === limit && !stopping.aborted; ) {
    const rows = await take(limit);
    await Promise.all(rows.map(handle));
    taken = rows.length;
  }
}
