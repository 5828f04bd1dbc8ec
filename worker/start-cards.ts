import { type CardActivities, createCardActivities } from '../activities/card-activities.ts';
import { startIdentifying, startLateAnswers } from '../cards/jobs.ts';
import type { CardNetwork } from '../issuers/card-network.ts';
import { startInbox } from '../issuers/inbox/jobs.ts';
import { startLiveNetwork } from '../issuers/live-network.ts';
import { startReconciling } from '../issuers/reconciliation/jobs.ts';
import { openRequestBudget } from '../issuers/request-budget.ts';
import { startTruingUp } from '../issuers/true-ups/jobs.ts';
import { startExpiring } from '../payments/jobs.ts';
import { cardsTaskQueue } from '../platform/config/task-queues.ts';
import { SIGN_OF_LIFE_MS } from '../platform/temporal/attempts.ts';
import { createReadSignalSender } from '../platform/temporal/signal-sender.ts';
import { startSweep } from '../requests/jobs.ts';
import { createResponseNotifier } from '../requests/response-notice.ts';
import { createPartWorker, type PartOptions, type WorkerPart } from './worker-part.ts';

export interface CardsOptions extends PartOptions {
  /** Wraps the activities, for tests that kill the process between them. */
  around: {
    activities?(activities: CardActivities): CardActivities;
    network?(network: CardNetwork): CardNetwork;
    /** How long a reconciliation waits before it looks again, if not as long as usual. */
    reconcileGraceMs?: number;
  };
}

/**
 * Starts everything about cards: the worker for issuances, transfers and status changes, the sweep of work
 * that dead API processes left behind, the look-up of the ids of cards that an operator activated, the
 * expiry of authorizations, the moving of money
 * that the network has to follow with, the reading of the network's events, and the comparison with its
 * lists.
 */
export async function startCards(options: CardsOptions): Promise<WorkerPart> {
  const { config, orm, ring, client, around, logger } = options;
  const apiUrl = `http://${config.host}:${config.port}`;
  const budget = openRequestBudget(config, orm, logger);
  const { cardNetwork } = config;
  const live = await startLiveNetwork({ config, cardNetwork, apiUrl, orm, ring, budget, logger });
  const liveNetwork = live.network && (around.network?.(live.network) ?? live.network);
  const taskQueue = cardsTaskQueue(config.taskQueuePrefix);
  const activities = createCardActivities({
    orm,
    ring,
    logger,
    liveNetwork,
    liveNetworkConfigured: liveNetwork !== null,
    issuanceDeadlineMs: config.issuanceDeadlineMs,
    topUpDeadlineMs: config.topUpDeadlineMs,
    withdrawalDeadlineMs: config.withdrawalDeadlineMs,
    signalSender: createReadSignalSender(client),
    answered: createResponseNotifier(orm, logger),
  });
  const worker = await createPartWorker(options, {
    taskQueue,
    versioning: 'PINNED',
    activities: around.activities?.(activities) ?? activities,
    maxHeartbeatThrottleInterval: SIGN_OF_LIFE_MS,
    // Enough slots that tasks which wait for an account's locked rows leave some for the others.
    maxConcurrentWorkflowTaskExecutions: 100,
  });
  const repeated = [
    startSweep({ orm, client, taskQueue, config, logger }),
    startIdentifying({ orm, liveNetwork, logger }),
    startLateAnswers({ orm, liveNetwork, logger }),
    startExpiring({ orm, logger }),
    startTruingUp({ orm, liveNetwork, logger }),
  ];
  if (liveNetwork !== null) {
    const { authorizationTtlMs } = config;
    repeated.push(
      startInbox({
        orm,
        ring,
        direct: options.direct,
        client,
        liveNetwork,
        cardNetwork,
        authorizationTtlMs,
        logger,
      }),
      startReconciling({
        orm,
        ring,
        authorizationTtlMs,
        liveNetwork,
        cardNetwork,
        ...(around.reconcileGraceMs !== undefined && { graceMs: around.reconcileGraceMs }),
        logger,
      }),
    );
  }
  return {
    worker,
    metrics: [...live.metrics, ...budget.metrics],
    stop: async () => {
      await Promise.all(repeated.map((one) => one.stop()));
      await live.stop();
    },
  };
}
