import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import {
  issueCardWorkflowId,
  networkResult,
  topUpCardWorkflowId,
  withdrawFromCardWorkflowId,
} from '../../workflows/messages.ts';

/** Whoever told us repeats it if this takes longer, and Temporal's own patience would keep it waiting for half a minute. */
const SIGNAL_TIMEOUT_MS = 3_000;

/** The workflow of a card's issuance, a top-up or a withdrawal, by its id. */
export const OPERATION_WORKFLOW_IDS = {
  card: issueCardWorkflowId,
  topup: topUpCardWorkflowId,
  withdrawal: withdrawFromCardWorkflowId,
} as const;

/**
 * Tells a running issuance, top-up or withdrawal that the network has an outcome for it, so that it asks at once.
 * @param id of the card, the top-up or the withdrawal
 * @returns whether its workflow is still running
 */
export async function signalNetworkResult(
  client: Client,
  subject: keyof typeof OPERATION_WORKFLOW_IDS,
  id: string,
): Promise<boolean> {
  try {
    await client.withDeadline(Date.now() + SIGNAL_TIMEOUT_MS, () =>
      client.workflow.getHandle(OPERATION_WORKFLOW_IDS[subject](id)).signal(networkResult),
    );
    return true;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}
