import type { Logger } from 'pino';
import { nextTime, type TimeOfDay } from '../platform/config/time-of-day.ts';
import { type Orm, openOrm, type ServiceDatabase } from '../platform/db/orm.ts';
import { SERVICE_LIMITS } from '../platform/db/session.ts';
import { query } from '../platform/db/sql.ts';
import { keepMeasurement, takeMeasurement } from '../platform/monitoring/measurements.ts';
import { type Repetition, repeat } from '../platform/process/repeat.ts';
import { untilAborted } from '../platform/process/work-context.ts';
import { checkAndRecord } from './check-ledger.ts';

const LOOK_EVERY_MS = 60_000;
/** Each invariant's statement reads the whole ledger. */
const MAX_STATEMENT_MS = 25 * 60_000;
/** If the worker that runs the check dies, another one starts over after this. */
const LEASE_MS = 30 * 60_000;
/** If it fails, it is made again after this: the same statement may take too long again. */
const RETRY_MS = 6 * 3_600_000;
/** It is due within a day, by the clock of the worker that made it last, which may differ. */
const LONGEST_MS = 25 * 3_600_000;

/**
 * Makes one of the workers check the whole ledger once a day, on a separate connection, one statement at a
 * time, each on one of PostgreSQL's cores. That takes longer, but hardly slows other work.
 */
export function startCheckingLedger(options: {
  orm: Orm;
  direct: ServiceDatabase['direct'];
  at: TimeOfDay;
  logger: Logger;
}): Repetition {
  const { orm, direct, at, logger } = options;

  async function check(stopping: AbortSignal): Promise<void> {
    const reader = await openOrm({
      ...direct,
      poolSize: 1,
      limits: { ...SERVICE_LIMITS, statementMs: MAX_STATEMENT_MS },
      applicationName: 'card-issuing-ledger-check',
    });
    try {
      const violations = await untilAborted(stopping, async () => {
        await query(reader.em.fork(), 'SET max_parallel_workers_per_gather = 0');
        const beforeEach = async () => {
          await keepMeasurement(orm, { name: 'ledger_check', forMs: LEASE_MS });
        };
        return checkAndRecord(orm, { reader, nextAt: nextTime(at, new Date()), beforeEach });
      });
      const [first] = violations;
      if (first === undefined) logger.info('checked the ledger: every invariant holds');
      else
        logger.error(
          { violations: violations.length, first },
          'the ledger is not right: see "npm run operator -- ledger check", and find the cause before you change anything',
        );
    } catch (error) {
      // If this worker only stops, another one starts at once.
      await keepMeasurement(orm, { name: 'ledger_check', forMs: stopping.aborted ? 0 : RETRY_MS });
      if (!stopping.aborted) throw error;
    } finally {
      await reader.close();
    }
  }

  return repeat('the check of the ledger', LOOK_EVERY_MS, logger, async (stopping) => {
    const { isTaken } = await takeMeasurement(orm, 'ledger_check', {
      leaseMs: LEASE_MS,
      longestMs: LONGEST_MS,
    });
    if (isTaken) await check(stopping);
  });
}
