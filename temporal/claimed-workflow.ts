import type { WorkflowStartOptions } from '@temporalio/client';
import { TypedSearchAttributes } from '@temporalio/common';
import type { WorkflowOperation } from '../domain/claim-operation.ts';
import { siblingId } from '../domain/ids.ts';
import type { Mode } from '../domain/mode.ts';
import {
  CHANGE_CARD_STATUS,
  changeCardStatusWorkflowId,
  ISSUE_CARD,
  issueCardWorkflowId,
  TOP_UP_CARD,
  topUpCardWorkflowId,
} from '../workflows/messages.ts';
import { cardIdAttribute, modeAttribute, partnerIdAttribute } from '../workflows/search-attributes.ts';

/** A claim whose work a workflow does. */
export interface ClaimedWorkflow {
  operation: WorkflowOperation;
  claimId: string;
  partnerId: string;
  mode: Mode;
  /** Of an issuance: the id the card is going to have. */
  cardId: string;
  taskQueue: string;
  /** How long the network may take before the operation waits for an operator; a status change has no deadline. */
  deadlineMs: number;
}

/**
 * After it a task is another worker's. A frozen one holds on to those it had, and takes a few more by the polls it had
 * under way, maybe one task twice: so it is less than a request waits. Shorter, and a slow worker loses tasks, too.
 */
const WORKFLOW_TASK_TIMEOUT_MS = 5_000;

const TITLES: Record<WorkflowOperation, string> = {
  create_card: 'Issue',
  top_up_card: 'Top up',
  freeze_card: 'Freeze',
  unfreeze_card: 'Unfreeze',
  block_card: 'Block',
};

/** Type, id and input of the workflow of a claim: the same whoever starts it. */
export function identityOf({ operation, claimId, cardId, deadlineMs }: ClaimedWorkflow): {
  type: string;
  workflowId: string;
  args: [object];
} {
  switch (operation) {
    case 'create_card':
      return { type: ISSUE_CARD, workflowId: issueCardWorkflowId(cardId), args: [{ claimId, deadlineMs }] };
    case 'top_up_card':
      return {
        type: TOP_UP_CARD,
        workflowId: topUpCardWorkflowId(siblingId('topup', claimId)),
        args: [{ claimId, deadlineMs }],
      };
    default:
      return {
        type: CHANGE_CARD_STATUS,
        workflowId: changeCardStatusWorkflowId(cardId, claimId),
        args: [{ claimId }],
      };
  }
}

/**
 * How the workflow of a claim is started, whoever starts it. It is not started twice, but for a status change: one whose
 * workflow was terminated keeps other changes of its card waiting, there is nothing an operator could decide, and where
 * the claim has its answer a second run does nothing.
 */
export function startOptions(workflow: ClaimedWorkflow) {
  const { operation, cardId, partnerId, mode, taskQueue } = workflow;
  const { type, workflowId, args } = identityOf(workflow);
  return {
    taskQueue,
    workflowId,
    args,
    workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT_MS,
    workflowIdConflictPolicy: 'USE_EXISTING',
    workflowIdReusePolicy: type === CHANGE_CARD_STATUS ? 'ALLOW_DUPLICATE' : 'REJECT_DUPLICATE',
    staticSummary: `${TITLES[operation]} ${cardId} (${mode})`,
    // Where tasks queue up in Temporal, partners take turns.
    priority: { fairnessKey: partnerId },
    typedSearchAttributes: new TypedSearchAttributes([
      { key: partnerIdAttribute, value: partnerId },
      { key: modeAttribute, value: mode },
      { key: cardIdAttribute, value: cardId },
    ]),
  } as const satisfies WorkflowStartOptions;
}
