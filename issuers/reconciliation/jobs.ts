import { nextTime } from '../../platform/config/time-of-day.ts';
import { notifyEvents } from '../../platform/db/notifications.ts';
import {
  keepMeasurement,
  recordMeasurement,
  takeMeasurement,
} from '../../platform/monitoring/measurements.ts';
import { describeError } from '../../platform/process/describe-error.ts';
import { type Repetition, repeat } from '../../platform/process/repeat.ts';
import { asService, untilAborted } from '../../platform/process/work-context.ts';
import { type CardNetwork, CardNetworkUnavailable } from '../card-network.ts';
import { checkSetUp } from './findings.ts';
import type { ReconciliationOptions } from './look.ts';
import { countReconciliation, dailyPeriod, reconcile } from './reconcile.ts';

const LOOK_EVERY_MS = 60_000;
/** In UTC: an hour after the usual time of the check of the ledger. */
const AT = { hour: 4, minute: 0 };
/**
 * If the worker that compares dies, another one begins again after this. A wait for the network's rate is
 * shorter.
 */
const LEASE_MS = 10 * 60_000;
/** After a run that failed. */
const PAUSE_MS = 15 * 60_000;
/** It is due within a day, by the clock of the worker that compared last, which may differ. */
const LONGEST_MS = 25 * 3_600_000;
const GRACE_MS = 20_000;

/**
 * Makes one of the workers compare our record with the card network's lists every night, and look whether the
 * network is set up right, which every worker does when it starts, too.
 */
export function startReconciling(
  options: Pick<ReconciliationOptions, 'orm' | 'ring' | 'cardNetwork' | 'authorizationTtlMs' | 'logger'> & {
    liveNetwork: CardNetwork;
    /** How long it waits before it looks again: {@link GRACE_MS} unless given. */
    graceMs?: number;
  },
): Repetition {
  const { orm, ring, liveNetwork, cardNetwork, authorizationTtlMs, graceMs = GRACE_MS, logger } = options;
  let isSetUpChecked = false;

  async function run(signal: AbortSignal): Promise<void> {
    const startedAt = new Date();
    isSetUpChecked = await checkSetUp(orm, cardNetwork, liveNetwork, logger);
    const since = await dailyPeriod(orm, cardNetwork);
    const onProgress = () => keepMeasurement(orm, { name: 'reconciliation', forMs: LEASE_MS });
    const compared = await reconcile({
      orm,
      ring,
      network: liveNetwork,
      cardNetwork,
      authorizationTtlMs,
      since,
      graceMs,
      signal,
      onProgress,
      logger,
    });
    const counts = countReconciliation(compared, startedAt);
    await recordMeasurement(orm, 'reconciliation', counts, nextTime(AT, new Date()));
    if (counts.corrected > 0) await notifyEvents(orm);
    logger.info({ ...counts }, 'compared our record with the card network');
  }

  return repeat('the reconciliation with the card network', LOOK_EVERY_MS, logger, async (stopping) => {
    const inItsTurns = (work: () => Promise<void>) =>
      untilAborted(stopping, () => asService('reconciliation', work));
    if (!isSetUpChecked) {
      await inItsTurns(async () => {
        isSetUpChecked = await checkSetUp(orm, cardNetwork, liveNetwork, logger);
      });
    }
    const times = { leaseMs: LEASE_MS, longestMs: LONGEST_MS };
    const { isTaken } = await takeMeasurement(orm, 'reconciliation', times);
    if (!isTaken) return;
    try {
      await inItsTurns(() => run(stopping));
    } catch (error) {
      // If this worker stops, another one may begin at once.
      await keepMeasurement(orm, { name: 'reconciliation', forMs: stopping.aborted ? 0 : PAUSE_MS });
      if (stopping.aborted) return;
      if (!(error instanceof CardNetworkUnavailable)) throw error;
      logger.warn({ error: describeError(error) }, 'could not read what the card network has; trying again');
    }
  });
}
