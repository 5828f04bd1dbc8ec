import type { Logger } from 'pino';
import type { Orm } from '../db/orm.ts';
import { query } from '../db/sql.ts';
import { type Repetition, repeat } from '../process/repeat.ts';

const INTERVAL_MS = 600_000;
const BATCH = 1_000;

/**
 * Forgets answered claims after 31 days (decisions.md: kept for at least 30), in small batches without long locks. In
 * test mode one without an answer was left by a process of an earlier release, and nothing has been done under it.
 */
export function startPruning({ orm, logger }: { orm: Orm; logger: Logger }): Repetition {
  return repeat('pruning old idempotency keys', INTERVAL_MS, logger, async () => {
    let pruned: unknown[];
    do {
      pruned = await query(
        orm.em.fork(),
        `DELETE FROM idempotency_claim WHERE id IN (
           SELECT id FROM idempotency_claim
           WHERE created_at < now() - interval '31 days' AND (response_status IS NOT NULL OR mode = 'test')
             AND NOT EXISTS (SELECT FROM card WHERE card.id = 'card' || substr(idempotency_claim.id, 6)
               AND card.status = 'funding_pending')
             AND NOT EXISTS (SELECT FROM topup WHERE topup.id = 'topup' || substr(idempotency_claim.id, 6)
               AND topup.status = 'pending')
           ORDER BY created_at LIMIT $1 FOR UPDATE SKIP LOCKED)
         RETURNING id`,
        [BATCH],
      );
    } while (pruned.length === BATCH);
  });
}
