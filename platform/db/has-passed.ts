import { type RawBuilder, sql } from 'kysely';

// A time in a row, until which somebody is to leave it alone. If the database's clock is set back, that lies
// further ahead than it was ever meant to, and the row would be left alone for as long as the clock was set
// back. So such a time counts as passed.

/**
 * Whether the time has passed, or lies further ahead than it is ever put. It goes by the time it is now, not
 * by when the transaction began: whoever waited for the row's lock would take what was put off meanwhile for
 * too far ahead.
 * @param at the time's column, with its table's alias if it needs one
 * @param longestMs how far ahead it is put at most
 */
export const hasPassed = (at: string, longestMs: number): RawBuilder<boolean> => sql<boolean>`
  NOT ${sql.ref(at)} BETWEEN clock_timestamp() AND clock_timestamp() + ${longestMs} * interval '1 millisecond'`;

/**
 * The times that have passed, as two ranges that an index can find: `BETWEEN time.earliest AND time.latest`.
 * @param longestMs as above
 */
export const passedTimes = (longestMs: number): RawBuilder<unknown> =>
  sql`(VALUES ('-infinity'::timestamptz, now()),
    (now() + ${sql.lit(longestMs)} * interval '1 millisecond', 'infinity')) time (earliest, latest)`;
