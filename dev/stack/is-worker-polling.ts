import type { Connection } from '@temporalio/client';

/** temporal.api.enums.v1.TaskQueueType */
const WORKFLOW = 1;

/** Whether a worker has asked this task queue for workflow tasks since a moment. */
export async function isWorkerPolling(
  connection: Connection,
  place: { namespace: string; taskQueue: string; sinceMs: number },
): Promise<boolean> {
  const { pollers } = await connection.workflowService.describeTaskQueue({
    namespace: place.namespace,
    taskQueue: { name: place.taskQueue },
    taskQueueType: WORKFLOW,
  });
  return (pollers ?? []).some(
    ({ lastAccessTime }) => Number(lastAccessTime?.seconds ?? 0) * 1000 >= place.sinceMs - 1000,
  );
}
