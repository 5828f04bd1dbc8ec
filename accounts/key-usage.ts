import { sql } from 'kysely';
import type { Orm } from '../platform/db/orm.ts';
import { autocommitStatement } from '../platform/db/sql.ts';

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
