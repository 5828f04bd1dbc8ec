import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { issueCardWorkflowId } from '../messages.ts';

/** Temporal's name of the status in lower case; `not_found` where it has no such workflow, or no longer. */
export type IssueCardStatus = string;

/** @throws ServiceError where Temporal can't be reached. */
export async function readIssueCardStatus(client: Client, cardId: string): Promise<IssueCardStatus> {
  try {
    const { status } = await client.workflow.getHandle(issueCardWorkflowId(cardId)).describe();
    return status.name.toLowerCase();
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return 'not_found';
    throw error;
  }
}
