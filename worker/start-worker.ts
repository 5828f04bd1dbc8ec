import { Client } from '@temporalio/client';
import { NativeConnection, Runtime, Worker, type WorkflowBundleOption } from '@temporalio/worker';
import type { Logger } from 'pino';
import { type CardActivities, createCardActivities } from '../activities/card-activities.ts';
import { startLiveNetwork } from '../adapters/live-network.ts';
import { createResponseNotifier } from '../commands/idempotency/response.ts';
import type { Config } from '../config/service.ts';
import { cardsTaskQueue } from '../config/task-queues.ts';
import { KeyRing } from '../crypto/key-ring.ts';
import { openServiceDatabase } from '../db/orm.ts';
import type { CardNetwork } from '../domain/card-network.ts';
import { describeError } from '../process/describe-error.ts';
import { attemptInterceptors, SIGN_OF_LIFE_MS } from '../temporal/attempts.ts';
import { bundleWorkflows } from '../temporal/bundle-workflows.ts';
import { type DepositActivities, startDeposits } from './deposits/start-deposits.ts';
import { startIdentifying } from './identify-cards.ts';
import { startPruning } from './prune-claims.ts';
import { startSweep } from './sweep-claims.ts';
import { startWebhooks } from './webhooks/start-webhooks.ts';

export interface RunningWorker {
  /** Settles when the worker has ended, by {@link stop} or by an error. */
  ended: Promise<void>;
  stop(): Promise<void>;
}

export interface WorkerOptions {
  /** Workflows already bundled; otherwise they are bundled at the start, which takes about a second. */
  workflowBundle?: WorkflowBundleOption;
  /** Stands around the effects, for tests that kill the process between them. */
  around?: {
    activities?(activities: CardActivities): CardActivities;
    depositActivities?(activities: DepositActivities): DepositActivities;
    network?(network: CardNetwork): CardNetwork;
  };
}

/** Opens what a worker needs and polls until it is stopped. */
export async function startWorker(
  config: Config,
  logger: Logger,
  options: WorkerOptions = {},
): Promise<RunningWorker> {
  const ring = new KeyRing(config.encryptionKeys);
  const { orm, direct } = await openServiceDatabase(config, logger, {
    poolSize: 22,
    // The service's own: the relay, the sweeps, the simulated network.
    shares: { accounts: 16, eachAccount: 4 },
    applicationName: 'card-issuing-worker',
  });
  const callbackUrl = `http://${config.host}:${config.port}/network/callbacks`;
  const live = await startLiveNetwork({ cardNetwork: config.cardNetwork, callbackUrl, orm, ring, logger });
  const same = <T>(effects: T): T => effects;
  const {
    activities: aroundActivities = same,
    depositActivities: aroundDeposits = same,
    network: aroundNetwork = same,
  } = options.around ?? {};
  const connection = await NativeConnection.connect(config.temporal.connectionOptions ?? {});
  const namespace = config.temporal.namespace ?? 'default';
  const taskQueue = cardsTaskQueue(config.taskQueuePrefix);

  const liveNetwork = live.network && aroundNetwork(live.network);
  const activities = createCardActivities({
    orm,
    ring,
    liveNetworkConfigured: live.network !== null,
    issuanceDeadlineMs: config.issuanceDeadlineMs,
    topUpDeadlineMs: config.topUpDeadlineMs,
    answered: createResponseNotifier(orm, (claimId, error) =>
      logger.warn(
        { claimId, error: describeError(error) },
        'could not notify the listeners that a claim has its answer',
      ),
    ),
    liveNetwork,
  });
  const workflowBundle = options.workflowBundle ?? (await bundleWorkflows(Runtime.instance().logger));
  const cards = await Worker.create({
    connection,
    namespace,
    taskQueue,
    workflowBundle,
    activities: aroundActivities(activities),
    interceptors: { activity: attemptInterceptors(logger) },
    maxHeartbeatThrottleInterval: SIGN_OF_LIFE_MS,
    // Those of accounts whose rows are locked wait, for a turn or the lock: the others' still find a place.
    maxConcurrentWorkflowTaskExecutions: 100,
    shutdownGraceTime: '5s',
    shutdownForceTime: '10s',
  });
  const client = new Client({ connection, namespace });
  const webhooks = await startWebhooks({
    config,
    orm,
    direct,
    ring,
    connection,
    client,
    workflowBundle,
    logger,
  });
  const deposits = await startDeposits({
    ...{ config, orm, direct, connection, client, workflowBundle, logger },
    around: aroundDeposits,
  });
  const workers = [cards, webhooks.worker, deposits.worker];
  const shutDown = () => {
    deposits.leave();
    for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
  };
  // One without the other is no worker: the process ends, and whoever supervises it starts another.
  const ran = Promise.all(workers.map((worker) => worker.run().finally(shutDown)));
  const sweep = startSweep({ orm, client, taskQueue, config, logger });
  const identifying = startIdentifying({ orm, liveNetwork, logger });
  const pruning = startPruning({ orm, logger });

  const ended = ran
    .then(() => {})
    .finally(async () => {
      const repeated = [sweep, identifying, pruning];
      await Promise.all([...repeated.map((one) => one.stop()), webhooks.stop(), deposits.stop()]);
      await live.stop();
      await connection.close();
      await orm.close();
    });
  return {
    ended,
    stop: async () => {
      shutDown();
      await ended;
    },
  };
}
