import type { Logger } from 'pino';
import { lowestId } from '../crypto/new-id.ts';
import type { Orm } from '../db/orm.ts';
import { query } from '../db/sql.ts';
import { EVENTS_KEPT_DAYS } from '../domain/event.ts';
import { type Repetition, repeat } from '../process/repeat.ts';

const INTERVAL_MS = 600_000;
const BATCH = 500;

/** Forgets events and their attempts after 30 days (decisions.md, "Event"). */
export function startEventPruning({ orm, logger }: { orm: Orm; logger: Logger }): Repetition {
  return repeat('pruning old events', INTERVAL_MS, logger, () => pruneEvents(orm));
}

/**
 * One round, in small batches without long locks. Events that are still being sent stay until that is over, and so do
 * those that somebody has in hand at the moment.
 */
export async function pruneEvents(orm: Orm, batch = BATCH): Promise<void> {
  const end = lowestId('evt', new Date(Date.now() - EVENTS_KEPT_DAYS * 24 * 3_600_000));
  for (let after: string | null = ''; after !== null; ) {
    const [seen]: { last: string | null }[] = await query(orm.em.fork(), PRUNE, [after, end, batch]);
    after = seen?.last ?? null;
  }
}

// Deletes by the walk through the ids; the batch's last id goes on even where nothing of the batch could be deleted.
const PRUNE = `
  WITH old AS MATERIALIZED (
    SELECT id FROM event WHERE id > $1 AND id < $2 ORDER BY id LIMIT $3
  ), settled AS MATERIALIZED (
    SELECT d.event_id FROM delivery d JOIN old ON old.id = d.event_id
    WHERE d.status NOT IN ('pending', 'retrying') FOR UPDATE OF d SKIP LOCKED
  ), pruned AS (
    DELETE FROM event WHERE id IN (SELECT event_id FROM settled)
  )
  SELECT max(id) AS last FROM old`;
