import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { until } from './until.ts';

/**
 * Lets a workflow's own time run ahead on the real server, from one timer to the next, by `durationMs`, and returns
 * when it has, or when the workflow has ended. Needs a server that is told `frontend.WorkflowTimeSkippingEnabled`.
 */
export async function skipTime(workflow: WorkflowHandle, durationMs: number): Promise<void> {
  const { client, workflowId } = workflow;
  const before = await finishedSkips(workflow);
  await client.workflowService.updateWorkflowExecutionOptions({
    namespace: client.options.namespace,
    workflowExecution: { workflowId },
    workflowExecutionOptions: {
      timeSkippingConfig: {
        enabled: true,
        fastForwardConfig: { id: randomUUID(), duration: msToTs(durationMs) },
        maxSessionSkipCount: 10_000,
      },
    },
    updateMask: { paths: ['time_skipping_config'] },
  });
  await until('the time is skipped', async () => {
    if ((await finishedSkips(workflow)) > before) return true;
    return (await workflow.describe()).status.name !== 'RUNNING';
  });
}

async function finishedSkips(workflow: WorkflowHandle): Promise<number> {
  const { events } = await workflow.fetchHistory();
  const skips = events?.map((event) => event.workflowExecutionTimeSkippingTransitionedEventAttributes);
  return skips?.filter((skip) => skip?.disabledAfterFastForward).length ?? 0;
}
