import { type Client, QueryNotRegisteredError, WorkflowNotFoundError } from '@temporalio/client';
import { type NetworkOperationState, networkOperationState } from '../workflows/messages.ts';

/** Temporal's name for the status, in lower case; `not_found` if the workflow does not exist or was deleted. */
export type WorkflowStatus = string;

/** @throws ServiceError if Temporal can't be reached. */
export async function readWorkflowStatus(client: Client, workflowId: string): Promise<WorkflowStatus> {
  try {
    const { status } = await client.workflow.getHandle(workflowId).describe();
    return status.name.toLowerCase();
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return 'not_found';
    throw error;
  }
}

/**
 * Asks the workflow of an issuance or a top-up what it is waiting for.
 * @returns null if there is no such workflow, or it has only just started
 * @throws ServiceError if Temporal can't be reached, or no worker responds
 */
export async function readOperationState(
  client: Client,
  workflowId: string,
): Promise<NetworkOperationState | null> {
  try {
    return await client.workflow.getHandle(workflowId).query(networkOperationState);
  } catch (error) {
    if (error instanceof WorkflowNotFoundError || error instanceof QueryNotRegisteredError) return null;
    throw error;
  }
}
