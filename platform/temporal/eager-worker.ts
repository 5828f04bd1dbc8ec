import { hostname } from 'node:os';
import { Client } from '@temporalio/client';
import {
  type CustomSlotSupplier,
  GracefulShutdownPeriodExpiredError,
  NativeConnection,
  Worker,
  type WorkflowBundleOption,
  type WorkflowSlotInfo,
} from '@temporalio/worker';
import type { Logger } from 'pino';
import type { Config } from '../config/service.ts';
import type { Tracing } from '../process/tracing.ts';
import { bundleInThread } from './bundle-workflows.ts';
import { installRuntime } from './install-runtime.ts';
import { ensureSearchAttributes } from './namespace.ts';
import { TemporalPlugin } from './plugin.ts';
import { deploymentOptions, hasWorkers } from './worker-deployment.ts';

/** How many first tasks a process runs at once; further ones go through the task queue. */
const TASKS = 64;

interface EagerWorkerOptions {
  config: Pick<Config, 'temporal' | 'codecKeys' | 'workerVersion'>;
  taskQueue: string;
  /** The local activities that its workflows run. */
  activities: object;
  /** A ready-made bundle of the workflows. Without it, a thread bundles them, which takes about a second. */
  workflowBundle?: WorkflowBundleOption;
  logger: Logger;
  /** Null if no traces are exported. */
  tracing?: Tracing | null;
}

export interface EagerWorker {
  /**
   * If this client starts a workflow with `requestEagerStart`, the response has the first task for this
   * worker.
   */
  client: Client;
  /** Resolves when the worker has ended; rejects if an error ended it. */
  ended: Promise<void>;
  /** Finishes the tasks in progress, within 10 s, and stops the worker. */
  stop(): Promise<void>;
}

/**
 * Starts a worker that runs the first tasks, with their local activities, of workflows that its own process
 * starts. It never polls Temporal for other tasks: worker processes run those, and finish what this one
 * leaves undone (docs/decisions/eager-starts.md).
 * @throws if Temporal can't be reached
 */
export async function startEagerWorker(options: EagerWorkerOptions): Promise<EagerWorker> {
  const { config, taskQueue, activities, logger, tracing = null } = options;
  installRuntime(logger);
  const namespace = config.temporal.namespace ?? 'default';
  const identity = `api-${process.pid}@${hostname()}`;
  const connection = await NativeConnection.connect({
    ...config.temporal.connectionOptions,
    plugins: [new TemporalPlugin({ codecKeys: config.codecKeys, logger, tracing })],
  });
  const client = new Client({ connection, namespace, identity });
  const worker = await createWorker().catch(async (error: unknown) => {
    await connection.close();
    throw error;
  });
  const ended = worker
    .run()
    .catch((error: unknown) => {
      // Another worker finishes what is left, such as a call to a silent network, as if this worker had died.
      if (!(error instanceof GracefulShutdownPeriodExpiredError)) throw error;
      logger.warn('the hosted worker stopped before its tasks had finished');
    })
    .finally(() => connection.close());
  return {
    client,
    ended,
    stop: async () => {
      if (worker.getState() === 'RUNNING') worker.shutdown();
      await ended;
    },
  };

  async function createWorker(): Promise<Worker> {
    const version = config.workerVersion;
    // Workflows are pinned to this worker's version, so without a worker process of that version nobody would
    // continue them.
    if (version !== null && !(await hasWorkers(client, version)))
      throw new Error(`no worker process of build ${version.buildId} has polled yet`);
    const [workflowBundle] = await Promise.all([
      options.workflowBundle ?? bundleInThread(),
      ensureSearchAttributes(connection, namespace, logger),
    ]);
    return Worker.create({
      connection,
      namespace,
      identity,
      taskQueue,
      workflowBundle,
      activities,
      ...deploymentOptions(config.workerVersion, 'PINNED'),
      enableNonLocalActivities: false,
      tuner: {
        workflowTaskSlotSupplier: eagerTasksOnly(TASKS),
        localActivityTaskSlotSupplier: { type: 'fixed-size', numSlots: TASKS },
        activityTaskSlotSupplier: { type: 'fixed-size', numSlots: 1 },
        nexusTaskSlotSupplier: { type: 'fixed-size', numSlots: 1 },
      },
      // A workflow is cached only while its task runs. This worker never polls for the next task, so another
      // one gets it.
      maxCachedWorkflows: TASKS,
      shutdownGraceTime: '5s',
      shutdownForceTime: '10s',
    });
  }
}

/** Has slots only for tasks that come with a start: a poller waits for a slot until the worker stops. */
function eagerTasksOnly(places: number): CustomSlotSupplier<WorkflowSlotInfo> {
  let free = places;
  return {
    type: 'custom',
    reserveSlot: (_, stopping) =>
      new Promise((_resolve, reject) => {
        const leave = () => reject(stopping.reason);
        stopping.addEventListener('abort', leave, { once: true });
        if (stopping.aborted) leave();
      }),
    tryReserveSlot() {
      if (free === 0) return null;
      free -= 1;
      return {};
    },
    markSlotUsed() {},
    releaseSlot() {
      free += 1;
    },
  };
}
