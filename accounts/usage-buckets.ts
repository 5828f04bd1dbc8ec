import { sql } from 'kysely';
import type { Orm } from '../platform/db/orm.ts';
import { autocommitStatement } from '../platform/db/sql.ts';

/** By bucket: how long it needs to be full again. */
export type BucketUsage = ReadonlyMap<string, number>;

/**
 * Adds this process's usage to the total of all processes, for any number of buckets in one statement.
 * @param usedMs by bucket: how much longer it needs to be full again
 * @returns the same buckets, with what all processes used
 */
export async function shareUsage(orm: Orm, usedMs: BucketUsage): Promise<BucketUsage> {
  const rows = await add(orm, { names: [...usedMs.keys()], usedMs: [...usedMs.values()] });
  return new Map(rows.map((row) => [row.name, row.full_in_ms]));
}

// Written out, because it adds to rows that other processes add to at the same time. It goes in the order of the names, so
// that no two processes deadlock.
const add = autocommitStatement(
  (_, { names, usedMs }: { names: string[]; usedMs: number[] }) => sql<{
    name: string;
    full_in_ms: number;
  }>`
  INSERT INTO usage_bucket AS u (name, full_at)
  SELECT name, now() + used_ms * interval '1 millisecond'
  FROM unnest(${names}::text[], ${usedMs}::float8[]) AS used (name, used_ms) ORDER BY name
  ON CONFLICT (name) DO UPDATE
    SET full_at = greatest(u.full_at, clock_timestamp()) + (excluded.full_at - now())
  RETURNING name, 1000 * extract(epoch FROM full_at - clock_timestamp())::float8 AS full_in_ms`,
);
