import {
  type Client,
  WithStartWorkflowOperation,
  WorkflowExecutionAlreadyStartedError,
} from '@temporalio/client';
import { TypedSearchAttributes } from '@temporalio/common';
import { siblingId } from '../../domain/ids.ts';
import type { Mode } from '../../domain/mode.ts';
import { firstAnswer, ISSUE_CARD, type IssueCardInput, issueCardWorkflowId } from '../messages.ts';
import { cardIdAttribute, modeAttribute, partnerIdAttribute } from '../search-attributes.ts';
import { stateAfterError } from './state-after-error.ts';

export interface IssueCardStart extends IssueCardInput {
  taskQueue: string;
  partnerId: string;
  mode: Mode;
}

/** Starts the issuance of a claim unless it was started before, whether it still runs or has ended. */
export async function startIssueCard(client: Client, start: IssueCardStart): Promise<void> {
  try {
    await client.workflow.start(ISSUE_CARD, startOptions(start));
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
}

/**
 * Starts the issuance of a claim, or joins it, and waits for its first answer in the same round trip.
 * @returns `over` where the workflow ended or was answered; `pending` where that took longer than `waitMs` or can't be
 * told: then it may even be unknown whether it started.
 * @throws ServiceError where Temporal can't be reached.
 */
export async function awaitFirstAnswer(
  client: Client,
  start: IssueCardStart,
  waitMs: number,
): Promise<'over' | 'pending'> {
  const startWorkflowOperation = new WithStartWorkflowOperation(ISSUE_CARD, startOptions(start));
  // It rejects with the call's own error, which is handled below.
  startWorkflowOperation.workflowHandle().catch(() => {});
  try {
    await client.withDeadline(Date.now() + waitMs, () =>
      client.workflow.executeUpdateWithStart(firstAnswer, {
        updateId: start.claimId,
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

/** How an issuance is started, whoever starts it. */
export function startOptions({ taskQueue, partnerId, mode, claimId, deadlineMs }: IssueCardStart) {
  const cardId = siblingId('card', claimId);
  return {
    taskQueue,
    workflowId: issueCardWorkflowId(cardId),
    workflowIdConflictPolicy: 'USE_EXISTING',
    workflowIdReusePolicy: 'REJECT_DUPLICATE',
    args: [{ claimId, deadlineMs }],
    staticSummary: `Issue ${cardId} (${mode})`,
    typedSearchAttributes: new TypedSearchAttributes([
      { key: partnerIdAttribute, value: partnerId },
      { key: modeAttribute, value: mode },
      { key: cardIdAttribute, value: cardId },
    ]),
  } as const;
}
