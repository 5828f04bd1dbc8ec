import type { EntityManager } from '@mikro-orm/postgresql';
import { query } from '../db/sql.ts';

/** Hands events to the relay that neither it nor a workflow has. */
export async function handToRelay(em: EntityManager, eventIds: string[]): Promise<void> {
  await query(
    em,
    `UPDATE delivery SET status = 'pending', lease_expires_at = '-infinity', next_attempt_at = NULL
     WHERE event_id = ANY ($1) AND status IN ('delivered', 'parked', 'no_endpoint')`,
    [eventIds],
  );
}
