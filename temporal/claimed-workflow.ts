import {
  type Client,
  WorkflowExecutionAlreadyStartedError,
  type WorkflowStartOptions,
} from '@temporalio/client';
import { TypedSearchAttributes } from '@temporalio/common';
import type { WorkflowOperation } from '../domain/claim-operation.ts';
import type { IssuanceDecision, TopUpDecision } from '../domain/decision.ts';
import type { Tenant } from '../domain/mode.ts';
import type { changeCardStatus } from '../workflows/change-card-status.ts';
import type { issueCard } from '../workflows/issue-card.ts';
import {
  CHANGE_CARD_STATUS,
  changeCardStatusWorkflowId,
  ISSUE_CARD,
  issueCardWorkflowId,
  resolveIssuance,
  resolveTopUp,
  TOP_UP_CARD,
  topUpCardWorkflowId,
} from '../workflows/messages.ts';
import { cardIdAttribute, modeAttribute, partnerIdAttribute } from '../workflows/search-attributes.ts';
import type { topUpCard } from '../workflows/top-up-card.ts';

/** A claim whose work a workflow does. */
export interface ClaimedWorkflow extends Tenant {
  operation: WorkflowOperation;
  claimId: string;
  /** Of an issuance: the id the card is going to have. */
  cardId: string;
  /** Of a top-up: the id it is going to have. */
  topUpId?: string | undefined;
  taskQueue: string;
  /** How long the network may take before the operation waits for an operator; a status change has no deadline. */
  deadlineMs: number;
}

/**
 * `eager`: its first task is this process's own. `queued`: whoever asks for it next has it, or it runs already. `over`:
 * it was started before, and has ended.
 */
export type Started = 'eager' | 'queued' | 'over';

/**
 * Starts the work of a claim unless it was started before, whether it still runs or has ended.
 * @param requestEagerStart of a client whose connection a worker of this process shares
 * @throws ServiceError if Temporal can't be reached.
 */
export async function startClaimed(
  client: Client,
  workflow: ClaimedWorkflow,
  requestEagerStart = false,
): Promise<Started> {
  try {
    const { eagerlyStarted } = await start(client, workflow, requestEagerStart);
    return eagerlyStarted ? 'eager' : 'queued';
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return 'over';
    throw error;
  }
}

/**
 * Starts the work of a claim although its workflow has ended, or is not known: after a restore the one may remember what the
 * other forgot. It is done under the same ids, so whatever was done before is found to be done.
 * @throws ServiceError if Temporal can't be reached.
 */
export async function startAgain(client: Client, workflow: ClaimedWorkflow): Promise<void> {
  await start(client, workflow, false, 'ALLOW_DUPLICATE');
}

function start(
  { workflow: client }: Client,
  workflow: ClaimedWorkflow,
  requestEagerStart: boolean,
  reuse?: 'ALLOW_DUPLICATE',
) {
  const { operation, claimId, deadlineMs } = workflow;
  const options = {
    ...optionsOf(workflow),
    ...(reuse !== undefined && { workflowIdReusePolicy: reuse }),
    requestEagerStart,
  };
  const funding: [{ claimId: string; deadlineMs: number }] = [{ claimId, deadlineMs }];
  switch (operation) {
    case 'create_card':
      return client.start<typeof issueCard>(ISSUE_CARD, { ...options, args: funding });
    case 'top_up_card':
      return client.start<typeof topUpCard>(TOP_UP_CARD, { ...options, args: funding });
    default:
      return client.start<typeof changeCardStatus>(CHANGE_CARD_STATUS, { ...options, args: [{ claimId }] });
  }
}

export type OperationDecision =
  | { operation: 'create_card'; decision: IssuanceDecision }
  | { operation: 'top_up_card'; decision: TopUpDecision };

/**
 * Hands an operator's decision to an operation that is past its deadline. If its workflow has ended, another one is
 * started with it, whose deadline has passed from the start.
 * @throws ServiceError if Temporal can't be reached.
 */
export async function resolveOperation(
  client: Client,
  claim: Omit<ClaimedWorkflow, 'deadlineMs' | 'operation'>,
  decided: OperationDecision,
): Promise<void> {
  const { operation } = decided;
  const options = {
    ...optionsOf({ ...claim, operation, deadlineMs: 0 }),
    workflowIdReusePolicy: 'ALLOW_DUPLICATE',
    args: [{ claimId: claim.claimId, deadlineMs: 0 }] as [{ claimId: string; deadlineMs: number }],
  } as const;
  if (decided.operation === 'create_card') {
    const signalled = { signal: resolveIssuance, signalArgs: [decided.decision] as [IssuanceDecision] };
    await client.workflow.signalWithStart<typeof issueCard, [IssuanceDecision]>(ISSUE_CARD, {
      ...options,
      ...signalled,
    });
  } else {
    const signalled = { signal: resolveTopUp, signalArgs: [decided.decision] as [TopUpDecision] };
    await client.workflow.signalWithStart<typeof topUpCard, [TopUpDecision]>(TOP_UP_CARD, {
      ...options,
      ...signalled,
    });
  }
}

/** The id of a claim's workflow: the same whoever starts it. */
export function workflowIdOf({ operation, claimId, cardId, topUpId }: ClaimedWorkflow): string {
  switch (operation) {
    case 'create_card':
      return issueCardWorkflowId(cardId);
    case 'top_up_card':
      if (topUpId === undefined) throw new Error(`${claimId} has no id for its top-up`);
      return topUpCardWorkflowId(topUpId);
    default:
      return changeCardStatusWorkflowId(cardId, claimId);
  }
}

/**
 * After it a task is another worker's. A frozen one holds on to those it had, and takes a few more by the polls it had
 * under way, maybe one task twice: so it is less than a request waits. Shorter, and a slow worker loses tasks, too.
 */
const WORKFLOW_TASK_TIMEOUT_MS = 5_000;

/** The command that shows operators what the workflow is about. */
const shownBy = ({ topUpId, cardId }: ClaimedWorkflow): string =>
  topUpId === undefined ? `card show ${cardId}` : `topup show ${topUpId}`;

const TITLES: Record<WorkflowOperation, string> = {
  create_card: 'Issue',
  top_up_card: 'Top up',
  freeze_card: 'Freeze',
  unfreeze_card: 'Unfreeze',
  block_card: 'Block',
};

/**
 * How the workflow of a claim is started, whoever starts it. It is not started twice, but for a status change: one whose
 * workflow was terminated keeps other changes of its card waiting, there is nothing an operator could decide, and if the
 * claim has its response a second run does nothing.
 */
function optionsOf(workflow: ClaimedWorkflow) {
  const { operation, cardId, partnerId, mode, taskQueue } = workflow;
  const isFunding = operation === 'create_card' || operation === 'top_up_card';
  return {
    taskQueue,
    workflowId: workflowIdOf(workflow),
    workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT_MS,
    workflowIdConflictPolicy: 'USE_EXISTING',
    workflowIdReusePolicy: isFunding ? 'REJECT_DUPLICATE' : 'ALLOW_DUPLICATE',
    staticSummary: `${TITLES[operation]} ${cardId} (${mode})`,
    staticDetails: `Partner \`${partnerId}\`. On the command line: \`npm run operator -- ${shownBy(workflow)}\`.`,
    // Where tasks queue up in Temporal, partners take turns.
    priority: { fairnessKey: partnerId },
    typedSearchAttributes: new TypedSearchAttributes([
      { key: partnerIdAttribute, value: partnerId },
      { key: modeAttribute, value: mode },
      { key: cardIdAttribute, value: cardId },
    ]),
  } as const satisfies Omit<WorkflowStartOptions, 'args'>;
}
