import { sql } from 'kysely';
import type { Orm } from '../platform/db/orm.ts';
import { dropOldEvents } from '../platform/db/partitions.ts';
import { autocommitStatement } from '../platform/db/sql.ts';

/**
 * Deletes events after 30 days (docs/partners/webhooks.md). Their deliveries are deleted in small batches
 * without long locks, except those that are still being sent or are locked, which are left for the next time.
 * Once a week of events has no deliveries left, it is dropped with all attempts. An event without a delivery
 * is shown nowhere.
 * @returns what {@link dropOldEvents} dropped
 */
export async function pruneEvents(
  orm: Orm,
  { batch = 500, stopping }: { batch?: number; stopping?: AbortSignal } = {},
): Promise<string[]> {
  for (let after: string | null = ''; after !== null && !stopping?.aborted; ) {
    const [seen]: { last: string | null }[] = await prune(orm, { after, batch });
    after = seen?.last ?? null;
  }
  return dropOldEvents(orm, stopping);
}

// The service's role may not delete younger rows, so the database enforces the 30 days.
const prune = autocommitStatement(
  (_, { after, batch }: { after: string; batch: number }) => sql<{ last: string | null }>`
  SELECT prune_deliveries(${after}, ${batch}) AS last`,
);
