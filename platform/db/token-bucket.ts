import { type RawBuilder, sql } from 'kysely';

/** A time that is further ahead than a bucket's can be, and by more than this, is of a clock that was set back. */
const MAX_SET_BACK_SECONDS = 60;

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
  const maxAheadSeconds = size / perSecond + MAX_SET_BACK_SECONDS;
  const fullAt = sql`CASE WHEN ${sql.ref(column)} BETWEEN clock_timestamp()
    AND clock_timestamp() + ${sql.lit(maxAheadSeconds)} * interval '1 second'
    THEN ${sql.ref(column)} ELSE clock_timestamp() END`;
  // The clock advances between the two reads.
  const secondsUntilFull = sql`greatest(0, extract(epoch FROM ${fullAt} - clock_timestamp()))`;
  return {
    left: sql<number>`${sql.lit(size)} - ceil(${sql.lit(perSecond)} * ${secondsUntilFull})`,
    waitSeconds: sql<number>`ceil(${secondsUntilFull} - ${sql.lit((size - 1) / perSecond)})::float8`,
    afterTaking: (count: RawBuilder<unknown>) =>
      sql<string>`${fullAt} + ${count} * interval '1 second' / ${sql.lit(perSecond)}`,
  };
}
