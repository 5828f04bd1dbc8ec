import { fileURLToPath } from 'node:url';
import { Client } from '@temporalio/client';
import { NativeConnection, Worker, type WorkflowBundleOption } from '@temporalio/worker';
import type { Logger } from 'pino';
import { type CardIssuanceActivities, createCardIssuanceActivities } from '../activities/card-issuance.ts';
import type { CardNetwork } from '../adapters/card-network/card-network.ts';
import { testCardIssuer } from '../adapters/card-network/test-cards.ts';
import type { Config } from '../config.ts';
import { KeyRing } from '../db/key-ring.ts';
import { openOrm } from '../db/orm.ts';
import { cardsTaskQueue } from '../domain/task-queues.ts';
import { startLiveNetwork } from './live-network.ts';
import { startPruning } from './prune-claims.ts';
import { safeFailures } from './safe-failures.ts';
import { startSweep } from './sweep-claims.ts';

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
    activities(activities: CardIssuanceActivities): CardIssuanceActivities;
    network(network: CardNetwork): CardNetwork;
  };
}

/** Opens what a worker needs and polls until it is stopped. */
export async function startWorker(
  config: Config,
  logger: Logger,
  options: WorkerOptions = {},
): Promise<RunningWorker> {
  const ring = new KeyRing(config.encryptionKeys);
  const orm = await openOrm({
    databaseUrl: config.databaseUrl,
    poolSize: 20,
    applicationName: 'card-issuing-worker',
  });
  const live = await startLiveNetwork(config, orm, ring, logger);
  const around = options.around ?? { activities: (same) => same, network: (same) => same };
  const connection = await NativeConnection.connect(config.temporal.connectionOptions ?? {});
  const namespace = config.temporal.namespace ?? 'default';
  const taskQueue = cardsTaskQueue(config.taskQueuePrefix);

  const activities = createCardIssuanceActivities({
    orm,
    ring,
    issueTestCard: testCardIssuer(ring),
    liveNetworkConfigured: live.network !== null,
    liveNetwork: live.network && around.network(live.network),
  });
  const worker = await Worker.create({
    connection,
    namespace,
    taskQueue,
    ...(options.workflowBundle
      ? { workflowBundle: options.workflowBundle }
      : { workflowsPath: fileURLToPath(new URL('../workflows/index.ts', import.meta.url)) }),
    activities: around.activities(activities),
    interceptors: { activity: [() => ({ inbound: safeFailures(logger) })] },
    shutdownGraceTime: '5s',
    shutdownForceTime: '10s',
  });
  const ran = worker.run();
  const client = new Client({ connection, namespace });
  const sweep = startSweep({ orm, client, taskQueue, config, logger });
  const pruning = startPruning({ orm, logger });

  const ended = ran.finally(async () => {
    await Promise.all([sweep.stop(), pruning.stop()]);
    await live.stop();
    await connection.close();
    await orm.close();
  });
  return {
    ended,
    stop: async () => {
      if (worker.getState() === 'RUNNING') worker.shutdown();
      await ended;
    },
  };
}
