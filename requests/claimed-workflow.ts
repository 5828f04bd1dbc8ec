import {
  type Client,
  QueryNotRegisteredError,
  WorkflowExecutionAlreadyStartedError,
  type WorkflowIdReusePolicy,
  WorkflowNotFoundError,
  type WorkflowStartOptions,
} from '@temporalio/client';
import { TypedSearchAttributes } from '@temporalio/common';
import type { WorkflowOperation } from '../domain/claim-operation.ts';
import type { IssuanceDecision, TopUpDecision, WithdrawalDecision } from '../domain/decision.ts';
import type { Tenant } from '../domain/mode.ts';
import {
  cardIdAttribute,
  modeAttribute,
  partnerIdAttribute,
} from '../platform/temporal/search-attributes.ts';
import {
  CHANGE_CARD_STATUS,
  type ChangeCardStatusWorkflow,
  changeCardStatusWorkflowId,
  ISSUE_CARD,
  issueCardWorkflowId,
  type NetworkOperationState,
  type NetworkOperationWorkflow,
  networkOperationState,
  resolveIssuanceSignal,
  resolveTopUpSignal,
  resolveWithdrawalSignal,
  TOP_UP_CARD,
  topUpCardWorkflowId,
  WITHDRAW_FROM_CARD,
  withdrawFromCardWorkflowId,
} from '../workflows/messages.ts';

/** A claim whose work is done by a workflow. */
export interface ClaimedWorkflow extends Tenant {
  operation: WorkflowOperation;
  claimId: string;
  /** For an issuance, the id that the card will have. */
  cardId: string;
  /** For a top-up, the id that it will have. */
  topUpId?: string | undefined;
  /** For a withdrawal, the id that it will have. */
  withdrawalId?: string | undefined;
  taskQueue: string;
  /** How long the network may take before the operation waits for an operator. Status changes have no deadline. */
  deadlineMs: number;
}

/**
 * `eager`: this process got the first task. `queued`: the first task goes to whichever worker polls next, or the workflow is
 * already running. `over`: it was started before and has completed.
 */
export type Started = 'eager' | 'queued' | 'over';

/**
 * Starts the work of a claim unless it runs already or has completed. A workflow that was terminated starts again.
 * @param requestEagerStart set it if a worker of this process shares the client's connection
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
 * Starts the work of a claim even if its workflow has ended: after a restore, Temporal may remember what the database forgot.
 * The work uses the same ids, so steps that were already done are recognised.
 * @throws ServiceError if Temporal can't be reached.
 */
export async function startAgain(client: Client, workflow: ClaimedWorkflow): Promise<void> {
  await start(client, workflow, false, 'ALLOW_DUPLICATE');
}

function start(
  { workflow: client }: Client,
  workflow: ClaimedWorkflow,
  requestEagerStart: boolean,
  workflowIdReusePolicy: WorkflowIdReusePolicy = REUSE_POLICIES[workflow.operation],
) {
  const { operation, claimId, deadlineMs } = workflow;
  const options = {
    ...startOptions(workflow),
    workflowIdReusePolicy,
    requestEagerStart,
  };
  const funding: [{ claimId: string; deadlineMs: number }] = [{ claimId, deadlineMs }];
  switch (operation) {
    case 'create_card':
      return client.start<NetworkOperationWorkflow>(ISSUE_CARD, { ...options, args: funding });
    case 'top_up_card':
      return client.start<NetworkOperationWorkflow>(TOP_UP_CARD, { ...options, args: funding });
    case 'withdraw_from_card':
      return client.start<NetworkOperationWorkflow>(WITHDRAW_FROM_CARD, { ...options, args: funding });
    case 'freeze_card':
    case 'unfreeze_card':
    case 'block_card':
      return client.start<ChangeCardStatusWorkflow>(CHANGE_CARD_STATUS, { ...options, args: [{ claimId }] });
  }
}

export type OperationDecision =
  | { operation: 'create_card'; decision: IssuanceDecision }
  | { operation: 'top_up_card'; decision: TopUpDecision }
  | { operation: 'withdraw_from_card'; decision: WithdrawalDecision };

/**
 * Sends an operator's decision to an operation that is past its deadline. If its workflow has ended, this starts another
 * with the decision and a deadline that has already passed.
 * @throws ServiceError if Temporal can't be reached.
 */
export async function resolveOperation(
  client: Client,
  claim: Omit<ClaimedWorkflow, 'deadlineMs' | 'operation'>,
  decided: OperationDecision,
): Promise<void> {
  const { operation } = decided;
  const options = {
    ...startOptions({ ...claim, operation, deadlineMs: 0 }),
    workflowIdReusePolicy: 'ALLOW_DUPLICATE',
    args: [{ claimId: claim.claimId, deadlineMs: 0 }] as [{ claimId: string; deadlineMs: number }],
  } as const;
  if (decided.operation === 'create_card') {
    const signalled = { signal: resolveIssuanceSignal, signalArgs: [decided.decision] as [IssuanceDecision] };
    await client.workflow.signalWithStart<NetworkOperationWorkflow, [IssuanceDecision]>(ISSUE_CARD, {
      ...options,
      ...signalled,
    });
  } else if (decided.operation === 'top_up_card') {
    const signalled = { signal: resolveTopUpSignal, signalArgs: [decided.decision] as [TopUpDecision] };
    await client.workflow.signalWithStart<NetworkOperationWorkflow, [TopUpDecision]>(TOP_UP_CARD, {
      ...options,
      ...signalled,
    });
  } else {
    const signalled = {
      signal: resolveWithdrawalSignal,
      signalArgs: [decided.decision] as [WithdrawalDecision],
    };
    await client.workflow.signalWithStart<NetworkOperationWorkflow, [WithdrawalDecision]>(
      WITHDRAW_FROM_CARD,
      {
        ...options,
        ...signalled,
      },
    );
  }
}

/** The id of a claim's workflow, the same for every starter. */
export function claimedWorkflowId(workflow: ClaimedWorkflow): string {
  const { operation, claimId, cardId, topUpId, withdrawalId } = workflow;
  switch (operation) {
    case 'create_card':
      return issueCardWorkflowId(cardId);
    case 'top_up_card':
      if (topUpId === undefined) throw new Error(`${claimId} has no id for its top-up`);
      return topUpCardWorkflowId(topUpId);
    case 'withdraw_from_card':
      if (withdrawalId === undefined) throw new Error(`${claimId} has no id for its withdrawal`);
      return withdrawFromCardWorkflowId(withdrawalId);
    case 'freeze_card':
    case 'unfreeze_card':
    case 'block_card':
      return changeCardStatusWorkflowId(cardId, claimId);
  }
}

/**
 * After this, a task goes to another worker. A frozen worker keeps the tasks it had, and gets a few more through its open
 * polls, possibly one task twice, so the timeout is shorter than a request waits. If it were shorter still, slow workers
 * would lose tasks too.
 */
const WORKFLOW_TASK_TIMEOUT_MS = 5_000;

/** The operator command that shows what the workflow is about. */
function shownBy({ operation, cardId, topUpId, withdrawalId }: ClaimedWorkflow): string {
  if (operation === 'top_up_card') return `topup show ${topUpId}`;
  if (operation === 'withdraw_from_card') return `withdrawal show ${withdrawalId}`;
  return `card show ${cardId}`;
}

const TITLES: Record<WorkflowOperation, string> = {
  create_card: 'Issue',
  top_up_card: 'Top up',
  withdraw_from_card: 'Withdraw from',
  freeze_card: 'Freeze',
  unfreeze_card: 'Unfreeze',
  block_card: 'Block',
};

const REUSE_POLICIES = {
  create_card: 'ALLOW_DUPLICATE_FAILED_ONLY',
  top_up_card: 'ALLOW_DUPLICATE_FAILED_ONLY',
  withdraw_from_card: 'ALLOW_DUPLICATE_FAILED_ONLY',
  freeze_card: 'ALLOW_DUPLICATE',
  unfreeze_card: 'ALLOW_DUPLICATE',
  block_card: 'ALLOW_DUPLICATE',
} as const satisfies Record<WorkflowOperation, string>;

/**
 * The start options of a claim's workflow. A funding's is not started again once it has completed. One that was terminated
 * is: its request waits, and money may be held for it. A status change is always started again: other changes of its card
 * wait for it. A second run does nothing if the claim has its response.
 */
function startOptions(workflow: ClaimedWorkflow) {
  const { operation, cardId, partnerId, mode, taskQueue } = workflow;
  return {
    taskQueue,
    workflowId: claimedWorkflowId(workflow),
    workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT_MS,
    workflowIdConflictPolicy: 'USE_EXISTING',
    workflowIdReusePolicy: REUSE_POLICIES[operation],
    staticSummary: `${TITLES[operation]} ${cardId} (${mode})`,
    staticDetails: `Partner \`${partnerId}\`. On the command line: \`npm run operator -- ${shownBy(workflow)}\`.`,
    // If tasks queue up in Temporal, partners take turns.
    priority: { fairnessKey: partnerId },
    typedSearchAttributes: new TypedSearchAttributes([
      { key: partnerIdAttribute, value: partnerId },
      { key: modeAttribute, value: mode },
      { key: cardIdAttribute, value: cardId },
    ]),
  } as const satisfies Omit<WorkflowStartOptions, 'args'>;
}

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
