import type { Logger } from 'pino';
import { pruneClaims } from '../commands/idempotency/abandoned-claims.ts';
import type { Orm } from '../db/orm.ts';
import { type Repetition, repeat } from '../process/repeat.ts';

const INTERVAL_MS = 600_000;
const BATCH = 1_000;

/** Forgets old claims in small batches, without long locks. */
export function startPruning({ orm, logger }: { orm: Orm; logger: Logger }): Repetition {
  return repeat('pruning old idempotency keys', INTERVAL_MS, logger, async () => {
    while ((await pruneClaims(orm, BATCH)) === BATCH);
  });
}
