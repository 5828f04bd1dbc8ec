import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import { type ClaimedWorkflow, identityOf, startOptions } from './claimed-workflow.ts';

/**
 * `eager`: its first task is this process' own. `queued`: whoever asks for it next has it, or it runs already. `over`:
 * it was started before, and has ended.
 */
export type Started = 'eager' | 'queued' | 'over';

/**
 * Starts the work of a claim unless it was started before, whether it still runs or has ended.
 * @param requestEagerStart of a client whose connection a worker of this process shares
 * @throws ServiceError where Temporal can't be reached.
 */
export async function startClaimed(
  client: Client,
  workflow: ClaimedWorkflow,
  requestEagerStart = false,
): Promise<Started> {
  try {
    const options = { ...startOptions(workflow), requestEagerStart };
    const { eagerlyStarted } = await client.workflow.start(identityOf(workflow).type, options);
    return eagerlyStarted ? 'eager' : 'queued';
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return 'over';
    throw error;
  }
}
