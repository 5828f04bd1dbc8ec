import { type RawBuilder, sql } from 'kysely';
import { hasPassed } from './has-passed.ts';

/** Longer than it takes until what was taken beyond the bucket's size is there again. */
const MARGIN_MS = 60_000;

/**
 * A token bucket shared by all processes. A row keeps it in one column, the time at which the bucket is full
 * again (the generic cell rate algorithm). A statement that takes tokens has to lock the row first.
 * @param column with its table's alias if it needs one
 * @param size how many tokens a full bucket has
 * @returns fragments for a statement: how many tokens are left, below zero if too many were taken; how many
 *   seconds until there is one, not above zero if there is one now; and the column's value after some were
 *   taken
 */
export function tokenBucket(column: string, { size, perSecond }: { size: number; perSecond: number }) {
  const isFull = hasPassed(column, (1_000 * size) / perSecond + MARGIN_MS);
  const fullAt = sql`CASE WHEN ${isFull} THEN clock_timestamp() ELSE ${sql.ref(column)} END`;
  // The clock advances between the two reads.
  const secondsUntilFull = sql`greatest(0, extract(epoch FROM ${fullAt} - clock_timestamp()))`;
  return {
    left: sql<number>`${sql.lit(size)} - ceil(${sql.lit(perSecond)} * ${secondsUntilFull})`,
    waitSeconds: sql<number>`ceil(${secondsUntilFull} - ${sql.lit((size - 1) / perSecond)})::float8`,
    afterTaking: (count: RawBuilder<unknown>) =>
      sql<string>`${fullAt} + ${count} * interval '1 second' / ${sql.lit(perSecond)}`,
  };
}
