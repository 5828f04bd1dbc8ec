import { createServer } from 'node:http';
import type Router from '@koa/router';
import { Client } from '@temporalio/client';
import { NativeConnection, Runtime, type WorkflowBundleOption } from '@temporalio/worker';
import Koa from 'koa';
import type { Logger } from 'pino';
import { chainAudit, startAnnouncingKeys } from '../accounts/jobs.ts';
import { pruneUsage } from '../accounts/usage.ts';
import { pruneWorkbenchSessions } from '../accounts/workbench-sessions.ts';
import { pruneRevealLinks } from '../cards/reveal-links.ts';
import { presentScan } from '../deposits/metrics.ts';
import { closeDays } from '../exports/close-days.ts';
import { startCheckingLedger } from '../exports/jobs.ts';
import { createDatabaseMetrics } from '../exports/metrics.ts';
import { takeLiveNetwork } from '../issuers/own-network.ts';
import type { Config } from '../platform/config/service.ts';
import {
  cardsTaskQueue,
  depositsTaskQueue,
  type WorkerQueue,
  webhooksTaskQueue,
} from '../platform/config/task-queues.ts';
import { KeyRing } from '../platform/crypto/key-ring.ts';
import { loadKeptKeys } from '../platform/db/kept-keys.ts';
import { WORKER_ROLE } from '../platform/db/login.ts';
import { type Orm, openServiceDatabase } from '../platform/db/orm.ts';
import { dropOldRequests, makePartitions } from '../platform/db/partitions.ts';
import { health, type ReadinessDependencies, readiness } from '../platform/monitoring/health.ts';
import { createProcessMetrics, type ProcessMetrics } from '../platform/monitoring/metrics.ts';
import { poolMetrics } from '../platform/monitoring/process-metrics.ts';
import { describeError } from '../platform/process/describe-error.ts';
import { type HttpAddress, type ListeningServer, listenOnPort } from '../platform/process/listen.ts';
import { type Repetition, repeat } from '../platform/process/repeat.ts';
import { startTracing } from '../platform/process/tracing.ts';
import { bundleWorkflows } from '../platform/temporal/bundle-workflows.ts';
import { installRuntime } from '../platform/temporal/install-runtime.ts';
import { ensureSearchAttributes } from '../platform/temporal/namespace.ts';
import { TemporalPlugin } from '../platform/temporal/plugin.ts';
import { readSdkMetrics } from '../platform/temporal/sdk-metrics.ts';
import { becomeCurrentIfFirst } from '../platform/temporal/worker-deployment.ts';
import { pruneClaims } from '../requests/abandoned-claims.ts';
import { pruneEvents } from '../webhooks/prune-events.ts';
import { pruneReplays } from '../webhooks/replays/start.ts';
import { type CardsOptions, startCards } from './start-cards.ts';
import { type DepositActivities, startDeposits } from './start-deposits.ts';
import { startWebhooks } from './start-webhooks.ts';
import type { WorkerPart } from './worker-part.ts';

export interface RunningWorker {
  /** Where it serves /healthz and /metrics. */
  operationsUrl: string;
  /** Settles when the worker has ended, by {@link stop} or by an error. */
  ended: Promise<void>;
  stop(): Promise<void>;
}

export interface WorkerOptions {
  /**
   * A ready-made bundle of the workflows. Without it, they are bundled at the start, which takes about a
   * second.
   */
  workflowBundle?: WorkflowBundleOption;
  /** Wraps the activities, for tests that kill the process between them. */
  around?: CardsOptions['around'] & {
    depositActivities?(activities: DepositActivities): DepositActivities;
  };
}

/**
 * Opens what a worker needs and polls its task queues until it is stopped: cards, webhooks and deposits, or
 * those in WORKER_QUEUES. Each comes with its background work, such as the webhook relay. It first starts to
 * listen for operators' requests.
 */
export async function startWorker(
  config: Config,
  logger: Logger,
  options: WorkerOptions = {},
): Promise<RunningWorker> {
  const metrics = createProcessMetrics(readSdkMetrics);
  let state: ReturnType<Parameters<typeof readiness>[0]> = 'is starting';
  const ready = readiness(() => state);
  metrics.add([ready.metric]);
  const routers = [health(), ready.router, metrics.router];
  const operations = await serveOperations(config.worker, routers, logger);
  try {
    const work = await startWork(config, logger, metrics, options);
    state = work.readiness;
    const ended = work.ended.finally(() => operations.stop());
    const stop = async () => {
      state = 'is stopping';
      work.shutDown();
      await ended;
    };
    return { operationsUrl: operations.url, ended, stop };
  } catch (error) {
    await operations.stop();
    throw error;
  }
}

async function startWork(
  config: Config,
  logger: Logger,
  metrics: ProcessMetrics,
  { around = {}, ...options }: WorkerOptions,
): Promise<{ ended: Promise<void>; shutDown(): void; readiness: ReadinessDependencies }> {
  const ring = new KeyRing(config.encryptionKeys);
  const { orm, direct, poolUsage } = await openServiceDatabase(config, logger, {
    role: WORKER_ROLE,
    poolSize: 22,
    // The other 6 are for the service itself: the relay, the repeated jobs, the simulated network.
    shares: { accounts: 16, eachAccount: 4 },
    applicationName: 'card-issuing-worker',
  });
  await loadKeptKeys(orm, ring);
  await takeLiveNetwork(orm, config.cardNetwork);
  metrics.add([
    ...poolMetrics(poolUsage),
    ...createDatabaseMetrics({ ...config, orm, tronNetwork: config.tron?.network ?? null, logger }),
  ]);
  const tracing = await startTracing('card-issuing-worker', config.tracing, logger);
  installRuntime(logger);
  const connection = await NativeConnection.connect({
    ...config.temporal.connectionOptions,
    plugins: [new TemporalPlugin({ codecKeys: config.codecKeys, logger, tracing })],
  });
  const client = new Client({ connection, namespace: config.temporal.namespace ?? 'default' });
  const [workflowBundle] = await Promise.all([
    options.workflowBundle ?? bundleWorkflows(Runtime.instance().logger),
    ensureSearchAttributes(connection, client.options.namespace, logger),
  ]);

  const shared = { config, orm, direct, ring, connection, client, workflowBundle, logger };
  const start: Record<WorkerQueue, () => Promise<WorkerPart>> = {
    cards: () => startCards({ ...shared, around }),
    webhooks: () => startWebhooks(shared),
    deposits: () => startDeposits({ ...shared, around: around.depositActivities }),
  };
  const parts: WorkerPart[] = [];
  for (const queue of config.worker.queues) parts.push(await start[queue]());
  metrics.add(parts.flatMap((part) => part.metrics));

  const shutDown = () => {
    for (const { worker, leave } of parts) {
      leave?.();
      if (worker.getState() === 'RUNNING') worker.shutdown();
    }
  };
  // If one ends, all end: the process exits, and its supervisor starts another.
  const ran = Promise.all(parts.map(({ worker }) => worker.run().finally(shutDown)));
  const repeated = [
    ...startUpkeep({ orm, logger }),
    startAnnouncingKeys({ orm, logger }),
    startCheckingLedger({ orm, direct, at: config.ledgerCheckAt, logger }),
  ];
  if (config.workerVersion !== null)
    repeated.push(becomeCurrentIfFirst(client, config.workerVersion, logger));
  const ended = ran
    .then(() => {})
    .finally(async () => {
      await Promise.all([...repeated, ...parts].map((one) => one.stop()));
      await connection.close();
      await orm.close();
      await tracing?.stop();
    });
  const { tron } = config;
  const readiness: ReadinessDependencies = {
    orm,
    client,
    logger,
    readScan: tron && (() => presentScan(orm, tron.network)),
    taskQueues: [cardsTaskQueue, webhooksTaskQueue, depositsTaskQueue].map((queue) =>
      queue(config.taskQueuePrefix),
    ),
  };
  return { ended, shutDown, readiness };
}

const UPKEEP_INTERVAL_MS = 600_000;
const CHAIN_INTERVAL_MS = 1_000;
const CHAINED_AT_ONCE = 500;
const PRUNED_AT_ONCE = 1_000;

/**
 * Chains the audit log's entries, creates coming partitions and deletes old data, in small steps without long
 * locks.
 */
function startUpkeep({ orm, logger }: { orm: Orm; logger: Logger }): Repetition[] {
  return [
    repeat('chaining the audit log', CHAIN_INTERVAL_MS, logger, async (stopping) => {
      while (!stopping.aborted && (await chainAudit(orm, CHAINED_AT_ONCE)) === CHAINED_AT_ONCE);
    }),
    repeat('making partitions', UPKEEP_INTERVAL_MS, logger, async (stopping) => {
      const made = await makePartitions(orm, stopping);
      if (made.length > 0) logger.info({ partitions: made }, 'made partitions');
    }),
    repeat('closing days', UPKEEP_INTERVAL_MS, logger, async (stopping) => {
      await closeDays({ orm, logger }, { stopping });
    }),
    repeat('pruning old idempotency keys', UPKEEP_INTERVAL_MS, logger, async (stopping) => {
      while (!stopping.aborted && (await pruneClaims(orm, PRUNED_AT_ONCE)) === PRUNED_AT_ONCE);
    }),
    repeat('pruning what limits have counted', UPKEEP_INTERVAL_MS, logger, () => pruneUsage(orm)),
    repeat('pruning old reveal links', UPKEEP_INTERVAL_MS, logger, async (stopping) => {
      while (!stopping.aborted && (await pruneRevealLinks(orm, PRUNED_AT_ONCE)) === PRUNED_AT_ONCE);
    }),
    repeat('pruning the log of requests', UPKEEP_INTERVAL_MS, logger, async (stopping) => {
      const dropped = await dropOldRequests(orm, stopping);
      if (dropped.length > 0) logger.info({ partitions: dropped }, 'dropped partitions of old requests');
    }),
    repeat('pruning old workbench sessions', UPKEEP_INTERVAL_MS, logger, async (stopping) => {
      while (!stopping.aborted && (await pruneWorkbenchSessions(orm, PRUNED_AT_ONCE)) === PRUNED_AT_ONCE);
    }),
    repeat('pruning old events', UPKEEP_INTERVAL_MS, logger, async (stopping) => {
      await pruneReplays(orm);
      const dropped = await pruneEvents(orm, { stopping });
      if (dropped.length > 0) logger.info({ partitions: dropped }, 'dropped partitions of old events');
    }),
  ];
}

/**
 * Serves health, readiness and metrics. They are not part of the API, and need no key.
 * @throws StartRefused if the address is not available
 */
function serveOperations(
  address: HttpAddress,
  routers: readonly Router[],
  logger: Logger,
): Promise<ListeningServer> {
  const app = new Koa();
  app.on('error', (error) => {
    logger.warn({ error: describeError(error) }, 'could not answer a request of operations');
  });
  app.use(async (ctx, next) => {
    ctx.set('Cache-Control', 'no-store');
    await next();
  });
  for (const router of routers) app.use(router.routes());
  return listenOnPort(createServer({ requestTimeout: 10_000 }, app.callback()), address, 'WORKER_PORT');
}
