import { sql } from 'kysely';
import type { Orm } from '../platform/db/orm.ts';
import { autocommitStatement } from '../platform/db/sql.ts';

/**
 * Records when keys were last used, for any number of keys in one statement. A key whose row is locked is
 * left for the next time.
 * @param lastUsedMs by key. What is recorded is deleted, unless the key was used again meanwhile
 */
export async function recordKeyUses(orm: Orm, lastUsedMs: Map<string, number>): Promise<void> {
  const uses = new Map(lastUsedMs);
  if (uses.size === 0) return;
  const recorded = await recordUses(orm, { keyIds: [...uses.keys()], usedMs: [...uses.values()] });
  for (const { id } of recorded) if (lastUsedMs.get(id) === uses.get(id)) lastUsedMs.delete(id);
}

const recordUses = autocommitStatement(
  (_, { keyIds, usedMs }: { keyIds: string[]; usedMs: number[] }) => sql<{ id: string }>`
  WITH locked AS (SELECT id FROM api_key WHERE id = ANY (${keyIds}) FOR NO KEY UPDATE SKIP LOCKED),
    updated AS (
      UPDATE api_key k SET last_used_at = used.at
      FROM (SELECT key_id, to_timestamp(used_ms / 1000) AS at
        FROM unnest(${keyIds}::text[], ${usedMs}::float8[]) AS given (key_id, used_ms)) used
      WHERE k.id = used.key_id AND (k.last_used_at IS NULL OR k.last_used_at < used.at)
        AND k.id IN (SELECT id FROM locked))
  SELECT id FROM locked`,
  { acrossTenants: 'key' },
);

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

// Written out, because it adds to rows that other processes add to at the same time. It goes in the order of
// the names, so that no two processes deadlock. If the clock has been set back since a bucket was counted, as
// much of it is used as was then: its keys would be refused until the clock comes there again.
const add = autocommitStatement(
  (_, { names, usedMs }: { names: string[]; usedMs: number[] }) => sql<{
    name: string;
    full_in_ms: number;
  }>`
  INSERT INTO usage_bucket AS u (name, full_at, counted_at)
  SELECT name, now() + used_ms * interval '1 millisecond', now()
  FROM unnest(${names}::text[], ${usedMs}::float8[]) AS used (name, used_ms) ORDER BY name
  ON CONFLICT (name) DO UPDATE
    SET full_at = clock_timestamp() + (excluded.full_at - now())
        + greatest(interval '0', u.full_at - greatest(u.counted_at, clock_timestamp())),
      counted_at = clock_timestamp()
  RETURNING name, 1000 * extract(epoch FROM full_at - clock_timestamp())::float8 AS full_in_ms`,
);

/** Deletes buckets that are full: they count as those that were never used. */
export async function pruneUsage(orm: Orm): Promise<void> {
  await prune(orm, {});
}

const prune = autocommitStatement(
  () => sql`
  DELETE FROM usage_bucket WHERE name IN (
    SELECT name FROM usage_bucket WHERE full_at < now() - interval '1 hour' FOR UPDATE SKIP LOCKED)`,
);

/**
 * Tells the other API processes which accounts are active in this one.
 * @param processId a random id of this process
 * @param accounts the active accounts, most recently active first
 * @returns the active accounts of every other process that has reported its own in the last three seconds
 */
export async function shareActiveAccounts(
  orm: Orm,
  processId: string,
  accounts: readonly string[],
): Promise<string[][]> {
  const others = await share(orm, { processId, accounts });
  return others.map((other) => other.active_accounts);
}

// Written out, because one round trip tells, asks, and forgets the processes that are gone.
const share = autocommitStatement(
  (_, { processId, accounts }: { processId: string; accounts: readonly string[] }) => sql<{
    active_accounts: string[];
  }>`
  WITH own AS (
    INSERT INTO api_process AS p (id, active_accounts, seen_at)
      VALUES (${processId}, ${accounts}::text[], now())
    ON CONFLICT (id) DO UPDATE SET active_accounts = excluded.active_accounts, seen_at = excluded.seen_at),
  gone AS (
    DELETE FROM api_process WHERE id IN (
      SELECT id FROM api_process WHERE seen_at < now() - interval '1 minute' FOR UPDATE SKIP LOCKED))
  SELECT active_accounts FROM api_process
  WHERE id <> ${processId} AND seen_at > now() - interval '3 seconds'`,
);
