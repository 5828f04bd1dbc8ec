import type { Client } from '@temporalio/client';
import { tsToMs } from '@temporalio/common/lib/time.js';

const TIMEOUT_MS = 3_000;
const WORKFLOW_TASK_QUEUE = 1;
/**
 * A worker asks for tasks at least once a minute. Temporal lists it for five minutes after it has stopped.
 */
const MAX_SILENCE_MS = 120_000;

/**
 * How many workers poll a task queue. One that died counts for two more minutes.
 * @throws ServiceError if Temporal can't be reached.
 */
export async function countWorkers(client: Client, taskQueue: string): Promise<number> {
  const { pollers } = await client.withDeadline(Date.now() + TIMEOUT_MS, () =>
    client.workflowService.describeTaskQueue({
      namespace: client.options.namespace,
      taskQueue: { name: taskQueue },
      taskQueueType: WORKFLOW_TASK_QUEUE,
    }),
  );
  const alive = (pollers ?? []).filter(
    ({ lastAccessTime }) => Date.now() - tsToMs(lastAccessTime) < MAX_SILENCE_MS,
  );
  return alive.length;
}
