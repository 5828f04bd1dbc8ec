import { sql } from 'kysely';
import type { Orm } from '../../db/orm.ts';
import { autocommitStatement } from '../../db/sql.ts';

/** By key: how long its bucket needs to be full again. */
export type KeyUsage = ReadonlyMap<string, number>;

/**
 * Adds this process's usage to the total of all processes, for any number of keys in one statement.
 * @param usedMs by key: how much longer its bucket needs to be full again
 * @returns the same keys, with what all processes used
 */
export async function shareKeyUsage(orm: Orm, usedMs: KeyUsage): Promise<KeyUsage> {
  const rows = await add(orm, { keyIds: [...usedMs.keys()], usedMs: [...usedMs.values()] });
  return new Map(rows.map((row) => [row.api_key_id, row.full_in_ms]));
}

// Written out, because it adds to rows that other processes add to at the same time. It goes in the order of the keys, so
// that no two processes deadlock.
const add = autocommitStatement(
  (_, { keyIds, usedMs }: { keyIds: string[]; usedMs: number[] }) => sql<{
    api_key_id: string;
    full_in_ms: number;
  }>`
  INSERT INTO api_key_usage AS u (api_key_id, full_at)
  SELECT key_id, now() + used_ms * interval '1 millisecond'
  FROM unnest(${keyIds}::text[], ${usedMs}::float8[]) AS used (key_id, used_ms) ORDER BY key_id
  ON CONFLICT (api_key_id) DO UPDATE
    SET full_at = greatest(u.full_at, clock_timestamp()) + (excluded.full_at - now())
  RETURNING api_key_id, 1000 * extract(epoch FROM full_at - clock_timestamp())::float8 AS full_in_ms`,
);

/**
 * Records when keys were last used, for any number of keys in one statement. A key whose row is locked is left for the next time.
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
