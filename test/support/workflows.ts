import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import type { temporal } from '@temporalio/proto';
import { query } from '../../platform/db/sql.ts';
import { issueCardWorkflowId } from '../../workflows/messages.ts';
import type { TestStack } from './stack.ts';
import { until } from './until.ts';

/** The workflow of the only claim in the database, once the server has it. */
export async function startedWorkflow({ orm, client }: TestStack): Promise<WorkflowHandle> {
  const claim = await until('a claim is made', async () => {
    const [row] = await query<{ id: string }>(
      orm.em.fork(),
      'SELECT resource_id AS id FROM idempotency_claim',
    );
    return row;
  });
  const workflow = client.workflow.getHandle(issueCardWorkflowId(claim.id));
  await untilStarted(workflow);
  return workflow;
}

/** Waits until the server has a workflow that another process starts. */
export async function untilStarted(workflow: WorkflowHandle): Promise<void> {
  await until('its workflow is started', async () => {
    const description = await workflow.describe().catch((error: Error) => error);
    if (!(description instanceof Error)) return true;
    if (description.name !== 'WorkflowNotFoundError') throw description;
    return false;
  });
}

/** The current details that the Temporal UI shows for a workflow. */
export async function detailsOf(workflow: WorkflowHandle): Promise<string> {
  return (await metadataOf(workflow)).currentDetails ?? '';
}

/** What Temporal's UI and command line show of a workflow, besides its history. */
export const metadataOf = (workflow: WorkflowHandle) =>
  workflow.query<temporal.api.sdk.v1.IWorkflowMetadata>('__temporal_workflow_metadata');

/**
 * Advances a workflow's own time on the real server by `durationMs`, from one timer to the next. Returns when that is
 * done, or when the workflow has ended. Needs a server that is told `frontend.WorkflowTimeSkippingEnabled`.
 */
export async function skipTime(workflow: WorkflowHandle, durationMs: number): Promise<void> {
  const { client, workflowId } = workflow;
  const { namespace } = client.options;
  const { runId } = await workflow.describe();
  const execution = { workflowId, runId };
  const { events } = await workflow.fetchHistory();
  const seen = events?.length ?? 0;
  await client.workflowService.updateWorkflowExecutionOptions({
    namespace,
    workflowExecution: execution,
    workflowExecutionOptions: {
      timeSkippingConfig: {
        enabled: true,
        fastForwardConfig: { id: randomUUID(), duration: msToTs(durationMs) },
        maxSessionSkipCount: 10_000,
      },
    },
    updateMask: { paths: ['time_skipping_config'] },
  });
  // The server answers as soon as there are more events, and gives no token for more once the workflow has ended.
  await client.withDeadline(Date.now() + 300_000, async () => {
    let read = 0;
    let nextPageToken: Uint8Array | undefined;
    do {
      const page = await client.workflowService.getWorkflowExecutionHistory({
        ...{ namespace, execution, waitNewEvent: true },
        nextPageToken,
      });
      const news = (page.history?.events ?? []).slice(Math.max(0, seen - read));
      if (
        news.some(
          (event) => event.workflowExecutionTimeSkippingTransitionedEventAttributes?.disabledAfterFastForward,
        )
      )
        return;
      read += page.history?.events?.length ?? 0;
      nextPageToken = page.nextPageToken ?? undefined;
    } while (nextPageToken !== undefined && nextPageToken.length > 0);
  });
}
