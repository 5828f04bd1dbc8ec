import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import { type Repetition, repeat } from '../../platform/process/repeat.ts';
import type { EagerWorker } from '../../platform/temporal/eager-worker.ts';
import { type ClaimedWorkflow, type Started, startClaimed } from '../../requests/claimed-workflow.ts';

const START_TIMEOUT_MS = 3_000;
/**
 * A start that takes longer is also sent over the other connection, which reports within a second if Temporal
 * is down.
 */
const PATIENCE_MS = 1_000;
const PAUSE_MS = 5_000;

export interface LiveWork {
  /**
   * Starts the work of a claim, or joins it.
   * @throws ServiceError if Temporal can't be reached.
   */
  start(workflow: ClaimedWorkflow): Promise<Started>;
  /** Runs a worker in this process. If it can't be started, or ends, it is started again. */
  host(startWorker: () => Promise<EagerWorker>): void;
  /** Finishes the tasks of this process and stops its worker. */
  stop(): Promise<void>;
}

/**
 * Starts the workflows of live mode. While the worker hosted by this process is running, it gets each
 * workflow's first task in the response to the start; otherwise, first tasks go through the task queue to the
 * worker processes.
 */
export function openLiveWork(client: Client, logger: Logger): LiveWork {
  let hosted: EagerWorker | null = null;
  let hosting: Repetition | null = null;

  return {
    async start(workflow) {
      if (hosted !== null) {
        const eager = startClaimed(hosted.client, workflow, { eagerly: true }).catch(() => null);
        const started = await Promise.race([eager, sleep(PATIENCE_MS, null, { ref: false })]);
        if (started !== null) return started;
      }
      return client.withDeadline(Date.now() + START_TIMEOUT_MS, () => startClaimed(client, workflow));
    },
    host(startWorker) {
      hosting = repeat('the worker hosted by the API', PAUSE_MS, logger, async (stopping) => {
        const worker = await startWorker();
        // `ended` rejects with the reason.
        const stop = () => void worker.stop().catch(() => {});
        stopping.addEventListener('abort', stop);
        if (stopping.aborted) stop();
        hosted = worker;
        try {
          await worker.ended;
        } finally {
          hosted = null;
          stopping.removeEventListener('abort', stop);
        }
      });
    },
    async stop() {
      await hosting?.stop();
    },
  };
}
