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
import { attemptInterceptors } from './attempts.ts';
import { bundleInThread } from './bundle-workflows.ts';
import { installRuntime } from './install-runtime.ts';

/** How many first tasks a process has at a time; what is started beyond them goes by the queue. */
const TASKS = 64;

export interface EagerWorkerOptions {
  config: Pick<Config, 'temporal'>;
  taskQueue: string;
  /** What its workflows ask for, as local activities. */
  activities: object;
  /** Workflows already bundled; otherwise they are bundled in a thread of their own, which takes about a second. */
  workflowBundle?: WorkflowBundleOption;
  logger: Logger;
}

export interface EagerWorker {
  /** With `requestEagerStart` the first task of what it starts comes back with the start, and is this worker's. */
  client: Client;
  /** Settles when the worker has ended; rejects where an error ended it. */
  ended: Promise<void>;
  /** Ends the tasks under way, within 10 s. */
  stop(): Promise<void>;
}

/**
 * A worker that runs the first task of what its own process starts, with its local activities, and never asks Temporal
 * for any other: all that follows, and whatever it leaves undone, is the worker processes'
 * (docs/decisions/eager-starts.md).
 * @throws where Temporal can't be reached.
 */
export async function startEagerWorker(options: EagerWorkerOptions): Promise<EagerWorker> {
  const { config, taskQueue, activities, logger } = options;
  installRuntime(logger);
  const namespace = config.temporal.namespace ?? 'default';
  const identity = `api-${process.pid}@${hostname()}`;
  const connection = await NativeConnection.connect(config.temporal.connectionOptions ?? {});
  const worker = await createWorker().catch(async (error: unknown) => {
    await connection.close();
    throw error;
  });
  const ended = worker.run().then(
    () => connection.close(),
    (error: unknown) => {
      // What it has left undone then, a silent network's question say, is another worker's as if it had died.
      if (!(error instanceof GracefulShutdownPeriodExpiredError)) throw error;
      logger.warn('the hosted worker stopped before its tasks had finished');
    },
  );
  return {
    client: new Client({ connection, namespace, identity }),
    ended,
    stop: async () => {
      if (worker.getState() === 'RUNNING') worker.shutdown();
      await ended;
    },
  };

  async function createWorker(): Promise<Worker> {
    return Worker.create({
      connection,
      namespace,
      identity,
      taskQueue,
      workflowBundle: options.workflowBundle ?? (await bundleInThread()),
      activities,
      interceptors: { activity: attemptInterceptors(logger) },
      enableNonLocalActivities: false,
      tuner: {
        workflowTaskSlotSupplier: eagerTasksOnly(TASKS),
        localActivityTaskSlotSupplier: { type: 'fixed-size', numSlots: TASKS },
        activityTaskSlotSupplier: { type: 'fixed-size', numSlots: 1 },
        nexusTaskSlotSupplier: { type: 'fixed-size', numSlots: 1 },
      },
      // A workflow is kept until its task is over. Its next one finds nobody who asks for it here, and is another's at once.
      maxCachedWorkflows: TASKS,
      shutdownGraceTime: '5s',
      shutdownForceTime: '10s',
    });
  }
}

/** Places for tasks that come with a start. Who asks for one to poll with waits until the worker stops. */
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
