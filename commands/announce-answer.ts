import { CLAIM_ANSWERED, EVENT_WRITTEN } from '../db/channels.ts';
import { query } from '../db/sql.ts';
import type { CommandContext } from './command-context.ts';

/**
 * Tells the process that waits for a claim's answer that it is there, before the workflow task that made it is
 * recorded, and the relays that there is an event to send, if there is. A statement of its own after the commit: NOTIFY
 * inside a transaction makes commits wait for each other.
 */
export async function announceAnswer({ orm }: Pick<CommandContext, 'orm'>, claimId: string): Promise<void> {
  await query(
    orm.em.fork(),
    `SELECT pg_notify($1, $2),
       CASE WHEN EXISTS (SELECT FROM delivery WHERE status = 'pending') THEN pg_notify($3, '') END`,
    [CLAIM_ANSWERED, claimId, EVENT_WRITTEN],
  );
}
