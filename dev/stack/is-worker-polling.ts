import { type Connection, isGrpcServiceError } from '@temporalio/client';
import { tsToMs } from '@temporalio/common/lib/time.js';

/** temporal.api.enums.v1.TaskQueueType */
const WORKFLOW = 1;

/** Whether a worker has asked this task queue for workflow tasks since a moment. */
export async function isWorkerPolling(
  connection: Connection,
  place: { namespace: string; taskQueue: string; sinceMs: number },
): Promise<boolean> {
  try {
    const { pollers } = await connection.workflowService.describeTaskQueue({
      namespace: place.namespace,
      taskQueue: { name: place.taskQueue },
      taskQueueType: WORKFLOW,
    });
    return (pollers ?? []).some(({ lastAccessTime: at }) => at != null && tsToMs(at) >= place.sinceMs);
  } catch (error) {
    // The Temporal server may itself be on its way back.
    if (isGrpcServiceError(error)) return false;
    throw error;
  }
}
