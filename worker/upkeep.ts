import type { Logger } from 'pino';
import { pruneClaims } from '../commands/idempotency/abandoned-claims.ts';
import { pruneEvents } from '../commands/webhooks/deliveries.ts';
import type { Orm } from '../db/orm.ts';
import { makePartitions } from '../db/partitions.ts';
import { type Repetition, repeat } from '../process/repeat.ts';

const INTERVAL_MS = 600_000;
const BATCH = 1_000;

/** Makes room for what is to come, and forgets what is old, in small steps without long locks. */
export function startUpkeep({ orm, logger }: { orm: Orm; logger: Logger }): Repetition {
  const repeated = [
    repeat('making partitions', INTERVAL_MS, logger, async (stopping) => {
      const made = await makePartitions(orm, stopping);
      if (made.length > 0) logger.info({ partitions: made }, 'made partitions');
    }),
    repeat('pruning old idempotency keys', INTERVAL_MS, logger, async (stopping) => {
      while (!stopping.aborted && (await pruneClaims(orm, BATCH)) === BATCH);
    }),
    repeat('pruning old events', INTERVAL_MS, logger, async (stopping) => {
      const dropped = await pruneEvents(orm, { stopping });
      if (dropped.length > 0) logger.info({ partitions: dropped }, 'dropped partitions of old events');
    }),
  ];
  return {
    stop: async () => {
      await Promise.all(repeated.map((one) => one.stop()));
    },
  };
}
