import type { Orm } from '../db/orm.ts';
import { query } from '../db/sql.ts';

/**
 * Shows what was given up as being sent again, after its workflow got the signal.
 * @param event.attempt_count as it was before the signal: an attempt made since then says more than this.
 */
export async function markRequeued(
  orm: Orm,
  event: { event_id: string; attempt_count: number },
): Promise<void> {
  await query(
    orm.em.fork(),
    `UPDATE delivery SET status = 'retrying', next_attempt_at = clock_timestamp()
     WHERE event_id = $1 AND attempt_count = $2 AND status = 'given_up'`,
    [event.event_id, event.attempt_count],
  );
}
