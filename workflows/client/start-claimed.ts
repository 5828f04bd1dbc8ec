import {
  type Client,
  WithStartWorkflowOperation,
  WorkflowExecutionAlreadyStartedError,
} from '@temporalio/client';
import { firstAnswer } from '../messages.ts';
import { type ClaimedWorkflow, identityOf, startOptions } from './claimed-workflow.ts';
import { stateAfterError } from './state-after-error.ts';

/** Starts the work of a claim unless it was started before, whether it still runs or has ended. */
export async function startClaimed(client: Client, workflow: ClaimedWorkflow): Promise<void> {
  try {
    await client.workflow.start(identityOf(workflow).type, startOptions(workflow));
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
}

/**
 * Starts the work of a claim, or joins it, and waits for its first answer in the same round trip.
 * @returns `over` where the workflow ended or was answered; `pending` where that took longer than `waitMs` or can't be
 * told: then it may even be unknown whether it started.
 * @throws ServiceError where Temporal can't be reached.
 */
export async function awaitFirstAnswer(
  client: Client,
  workflow: ClaimedWorkflow,
  waitMs: number,
): Promise<'over' | 'pending'> {
  const startWorkflowOperation = new WithStartWorkflowOperation(
    identityOf(workflow).type,
    startOptions(workflow),
  );
  // It rejects with the call's own error, which is handled below.
  startWorkflowOperation.workflowHandle().catch(() => {});
  try {
    await client.withDeadline(Date.now() + waitMs, () =>
      client.workflow.executeUpdateWithStart(firstAnswer, {
        updateId: workflow.claimId,
        startWorkflowOperation,
      }),
    );
    return 'over';
  } catch (error) {
    const state = stateAfterError(error);
    if (state === undefined) throw error;
    return state;
  }
}
