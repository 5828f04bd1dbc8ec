import { type Client, WorkflowNotFoundError } from '@temporalio/client';

/** Temporal's name of the status in lower case; `not_found` where it has no such workflow, or no longer. */
export type WorkflowStatus = string;

/** @throws ServiceError where Temporal can't be reached. */
export async function readWorkflowStatus(client: Client, workflowId: string): Promise<WorkflowStatus> {
  try {
    const { status } = await client.workflow.getHandle(workflowId).describe();
    return status.name.toLowerCase();
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return 'not_found';
    throw error;
  }
}
