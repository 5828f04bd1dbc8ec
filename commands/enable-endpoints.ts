import type { EntityManager } from '@mikro-orm/postgresql';
import { query } from '../db/sql.ts';
import type { Mode } from '../domain/mode.ts';

/**
 * Enables an account's endpoints, in the caller's transaction, which holds the account's lock, and hands what was parked
 * to the relay (decisions.md, "Rules").
 */
export async function enableEndpoints(
  tx: EntityManager,
  partnerId: string,
  modes: readonly Mode[],
): Promise<void> {
  await query(
    tx,
    `UPDATE webhook_endpoint SET status = 'enabled', disabled_reason = NULL
     WHERE partner_id = $1 AND mode = ANY ($2) AND status = 'disabled'`,
    [partnerId, modes],
  );
  await query(
    tx,
    `UPDATE delivery d SET status = 'pending', schedule_attempts = 0, lease_expires_at = '-infinity',
       next_attempt_at = clock_timestamp()
     WHERE d.status = 'parked' AND d.partner_id = $1 AND d.mode IN (
       SELECT mode FROM webhook_endpoint WHERE partner_id = $1 AND mode = ANY ($2))`,
    [partnerId, modes],
  );
}
