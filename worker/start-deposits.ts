import { createWatchDepositActivities, type WatchDepositActivities } from '../deposits/activities.ts';
import { startCrediting, startExpiring, startPlaying } from '../deposits/jobs.ts';
import { createScanChainActivities, type ScanChainActivities } from '../deposits/scan-activities.ts';
import { createTronChain } from '../deposits/tron/create-tron-chain.ts';
import { awaitLook, takeUnnotifiedDeposits } from '../deposits/watched-deposits.ts';
import { ensureScan, notifyDeposit } from '../deposits/workflows.ts';
import { depositsTaskQueue } from '../platform/config/task-queues.ts';
import {
  createNotifier,
  DEPOSIT_CHANGED,
  listenToNotifications,
  notifyDeposits,
  notifyEvents,
} from '../platform/db/notifications.ts';
import type { Orm } from '../platform/db/orm.ts';
import { describeError } from '../platform/process/describe-error.ts';
import { repeat } from '../platform/process/repeat.ts';
import { reportProgress, SIGN_OF_LIFE_MS } from '../platform/temporal/attempts.ts';
import { createReadSignalSender } from '../platform/temporal/signal-sender.ts';
import { notifyInTurns } from './notify-in-turns.ts';
import { createPartWorker, type PartOptions, type WorkerPart } from './worker-part.ts';

/** How often the worker makes sure that the scan runs: if somebody terminated it, it is back that soon. */
const ENSURE_INTERVAL_MS = 10_000;
const CALL_TIMEOUT_MS = 5_000;
/** How often it looks for changed deposits without being notified. */
const IDLE_MS = 5_000;
/** With 4 of each account in a round, at most 20 of one account in a second. */
const ROUND_PAUSE_MS = 200;

export interface DepositActivities extends ScanChainActivities, WatchDepositActivities {}

interface DepositsOptions extends PartOptions {
  /** Wraps the activities, for tests that kill the process between them. */
  around: ((activities: DepositActivities) => DepositActivities) | undefined;
}

/**
 * Starts everything between a chain and a balance: the worker that scans the chain and runs the deposits'
 * workflows, on a separate task queue; the crediting of payments; the expiry of deposits; the payments of
 * test deposits; and the signals to workflows whose deposits have changed. Without TRON_NETWORK nothing is
 * scanned, but payments found before are still credited or reviewed.
 */
export async function startDeposits(options: DepositsOptions): Promise<WorkerPart> {
  const { config, orm, client, logger } = options;
  const taskQueue = depositsTaskQueue(config.taskQueuePrefix);
  const stopping = new AbortController();
  const notifier = (what: string, send: (orm: Orm) => Promise<void>) =>
    createNotifier(
      () => send(orm),
      (error) =>
        logger.warn({ error: describeError(error) }, `could not notify the database's listeners of ${what}`),
    );
  const announceEvents = notifier('events', notifyEvents);
  // This process gets the notification too.
  const announceDeposits = notifier('changed deposits', notifyDeposits);
  const tron = config.tron && {
    network: config.tron.network,
    scanIntervalMs: config.tron.scanIntervalMs,
    chain: createTronChain(config.tron, logger),
  };
  const activities = {
    ...createWatchDepositActivities(orm, createReadSignalSender(client)),
    ...createScanChainActivities({
      orm,
      tron,
      logger,
      changed: announceDeposits,
      report: reportProgress,
      stopping: stopping.signal,
    }),
  };
  const worker = await createPartWorker(options, {
    taskQueue,
    versioning: 'AUTO_UPGRADE',
    activities: options.around?.(activities) ?? activities,
    maxHeartbeatThrottleInterval: SIGN_OF_LIFE_MS,
    stickyQueueScheduleToStartTimeout: '5s',
    // A frozen worker can still get one task per open poll, which then has to time out, so poll as little as
    // possible.
    maxConcurrentActivityTaskPolls: 1,
    maxConcurrentWorkflowTaskPolls: 2,
    maxCachedWorkflows: 200,
  });

  const announce = () => {
    announceEvents();
    announceDeposits();
  };
  const crediting = startCrediting({ orm, logger, served: announce });
  const expiring = startExpiring({ orm, logger, served: announce });
  const playing = startPlaying({
    orm,
    logger,
    served: () => {
      crediting.wake();
      announce();
    },
  });
  const notifying = notifyInTurns({
    what: 'deposits',
    idleMs: IDLE_MS,
    roundPauseMs: ROUND_PAUSE_MS,
    logger,
    take: (after: string | null) => takeUnnotifiedDeposits(orm, after),
    notify: async (deposit) => {
      const { id: depositId, partner_id: partnerId, mode } = deposit;
      await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
        notifyDeposit(client, { depositId, partnerId, mode }, taskQueue),
      );
      // The workflow records that it has looked. Until then it is not notified again, or only if it takes too
      // long.
      await awaitLook(orm, deposit);
    },
  });
  const ensuring =
    tron &&
    repeat('starting the scan', ENSURE_INTERVAL_MS, logger, () =>
      client.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
        ensureScan(client, tron.network, { taskQueuePrefix: config.taskQueuePrefix, taskQueue }),
      ),
    );
  const wake = () => {
    crediting.wake();
    expiring.wake();
    notifying.wake();
  };
  const listening = listenToNotifications({
    database: options.direct,
    logger,
    on: { [DEPOSIT_CHANGED]: wake },
    onListening: wake,
  });
  return {
    worker,
    metrics: [],
    // Ends the scan's round: another worker continues.
    leave: () => stopping.abort(),
    stop: async () => {
      await listening.stop();
      await Promise.all([
        crediting.stop(),
        expiring.stop(),
        playing.stop(),
        notifying.stop(),
        ensuring?.stop(),
      ]);
      tron?.chain.close();
    },
  };
}
