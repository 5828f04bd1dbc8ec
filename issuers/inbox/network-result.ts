import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import type { TransferDirection } from '../../domain/transfer.ts';
import { issueCardWorkflowId, networkResult, transferWorkflowId } from '../../workflows/messages.ts';

/**
 * Whoever told us repeats it if this takes longer, and Temporal's own patience would keep it waiting for half
 * a minute.
 */
const SIGNAL_TIMEOUT_MS = 3_000;

/** The workflow of a card's issuance or of a transfer, by its id. */
export const operationWorkflowId = (subject: 'card' | TransferDirection, id: string): string =>
  subject === 'card' ? issueCardWorkflowId(id) : transferWorkflowId(subject, id);

/**
 * Tells a running issuance or transfer that the network has an outcome for it, so that it asks at once.
 * @param id of the card or the transfer
 */
export async function signalNetworkResult(
  client: Client,
  subject: 'card' | TransferDirection,
  id: string,
): Promise<void> {
  try {
    await client.withDeadline(Date.now() + SIGNAL_TIMEOUT_MS, () =>
      client.workflow.getHandle(operationWorkflowId(subject, id)).signal(networkResult),
    );
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
}
