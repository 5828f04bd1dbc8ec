import {
  type Client,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  type WorkflowStartOptions,
} from '@temporalio/client';
import { TypedSearchAttributes } from '@temporalio/common';
import type { WorkflowOperation } from '../domain/claim-operation.ts';
import type { Decision } from '../domain/decision.ts';
import type { Tenant } from '../domain/mode.ts';
import type { Config } from '../platform/config/service.ts';
import type { Row } from '../platform/db/entities.ts';
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
  type NetworkOperationWorkflow,
  resolveOperationSignal,
  TOP_UP_CARD,
  transferWorkflowId,
  WITHDRAW_FROM_CARD,
} from '../workflows/messages.ts';

/** A claim whose work is done by a workflow. */
export interface ClaimedWorkflow extends Tenant {
  operation: WorkflowOperation;
  claimId: string;
  /** For an issuance, the id that the card will have. */
  cardId: string;
  /** For a top-up or a withdrawal, the id that it will have. */
  transferId?: string | undefined;
  taskQueue: string;
  /**
   * How long the network may take before the operation waits for an operator. Status changes have no
   * deadline.
   */
  deadlineMs: number;
}

/** A claim whose work may have to be started, as its row has it. */
export type ClaimRow = Row<'idempotency_claim', 'id' | 'partner_id' | 'mode' | 'card_id' | 'resource_id'> & {
  operation: WorkflowOperation;
};

/** The work of a claim that was read from its row. */
export function claimedWorkflow(
  { id: claimId, operation, partner_id: partnerId, mode, ...claim }: ClaimRow,
  taskQueue: string,
  config: Pick<Config, 'issuanceDeadlineMs' | 'topUpDeadlineMs' | 'withdrawalDeadlineMs'>,
): ClaimedWorkflow {
  const cardId = claim.card_id ?? claim.resource_id;
  if (cardId === null) throw new Error(`${claimId} is about no card`);
  const deadlines = {
    create_card: config.issuanceDeadlineMs,
    top_up_card: config.topUpDeadlineMs,
    withdraw_from_card: config.withdrawalDeadlineMs,
    freeze_card: 0,
    unfreeze_card: 0,
    block_card: 0,
  };
  return {
    operation,
    claimId,
    cardId,
    transferId: claim.resource_id ?? undefined,
    partnerId,
    mode,
    taskQueue,
    deadlineMs: deadlines[operation],
  };
}

/**
 * `eager`: this process got the first task. `queued`: the first task goes to whichever worker polls next, or
 * the workflow is already running. `over`: it was started before and has completed.
 */
export type Started = 'eager' | 'queued' | 'over';

/**
 * Starts the work of a claim unless it runs already or has completed. A workflow that was terminated starts
 * again.
 * @param how.eagerly set it if a worker of this process shares the client's connection
 * @param how.again also if it has completed: after a restore, Temporal may remember what the database forgot.
 *   The work uses the same ids, so steps that were already done are recognised
 * @throws ServiceError if Temporal can't be reached.
 */
export async function startClaimed(
  client: Client,
  workflow: ClaimedWorkflow,
  how: { eagerly?: boolean; again?: boolean } = {},
): Promise<Started> {
  const { operation, claimId, deadlineMs } = workflow;
  const { name, hasDeadline } = WORKFLOWS[operation];
  const options = startOptions(workflow);
  try {
    const { eagerlyStarted } = await client.workflow.start<
      NetworkOperationWorkflow | ChangeCardStatusWorkflow
    >(name, {
      ...options,
      workflowIdReusePolicy: how.again === true ? 'ALLOW_DUPLICATE' : options.workflowIdReusePolicy,
      requestEagerStart: how.eagerly === true,
      args: hasDeadline ? [{ claimId, deadlineMs }] : [{ claimId }],
    });
    return eagerlyStarted ? 'eager' : 'queued';
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return 'over';
    throw error;
  }
}

export interface OperationDecision {
  operation: 'create_card' | 'top_up_card' | 'withdraw_from_card';
  decision: Decision;
}

/**
 * Sends an operator's decision to an operation that is past its deadline. If its workflow has ended, this
 * starts another with the decision and a deadline that has already passed.
 * @throws ServiceError if Temporal can't be reached.
 */
export async function resolveOperation(
  client: Client,
  claim: Omit<ClaimedWorkflow, 'deadlineMs' | 'operation'>,
  { operation, decision }: OperationDecision,
): Promise<void> {
  await client.workflow.signalWithStart<NetworkOperationWorkflow, [Decision]>(WORKFLOWS[operation].name, {
    ...startOptions({ ...claim, operation, deadlineMs: 0 }),
    workflowIdReusePolicy: 'ALLOW_DUPLICATE',
    args: [{ claimId: claim.claimId, deadlineMs: 0 }],
    signal: resolveOperationSignal,
    signalArgs: [decision],
  });
}

const WORKFLOWS = {
  create_card: { name: ISSUE_CARD, title: 'Issue', hasDeadline: true },
  top_up_card: { name: TOP_UP_CARD, title: 'Top up', hasDeadline: true },
  withdraw_from_card: { name: WITHDRAW_FROM_CARD, title: 'Withdraw from', hasDeadline: true },
  freeze_card: { name: CHANGE_CARD_STATUS, title: 'Freeze', hasDeadline: false },
  unfreeze_card: { name: CHANGE_CARD_STATUS, title: 'Unfreeze', hasDeadline: false },
  block_card: { name: CHANGE_CARD_STATUS, title: 'Block', hasDeadline: false },
} as const satisfies Record<WorkflowOperation, object>;

export const WORKFLOW_OPERATIONS = Object.keys(WORKFLOWS) as WorkflowOperation[];

/** The id of a claim's workflow, the same for every starter. */
export function claimedWorkflowId(workflow: ClaimedWorkflow): string {
  const { operation, claimId, cardId, transferId } = workflow;
  switch (operation) {
    case 'create_card':
      return issueCardWorkflowId(cardId);
    case 'top_up_card':
    case 'withdraw_from_card':
      if (transferId === undefined) throw new Error(`${claimId} has no id for its transfer`);
      return transferWorkflowId(operation === 'top_up_card' ? 'topup' : 'withdrawal', transferId);
    case 'freeze_card':
    case 'unfreeze_card':
    case 'block_card':
      return changeCardStatusWorkflowId(cardId, claimId);
  }
}

/**
 * After this, a task goes to another worker. A frozen worker keeps the tasks it had, and gets a few more
 * through its open polls, possibly one task twice, so the timeout is shorter than a request waits. If it were
 * shorter still, slow workers would lose tasks too.
 */
const WORKFLOW_TASK_TIMEOUT_MS = 5_000;

/** The operator command that shows what the workflow is about. */
function shownBy({ operation, cardId, transferId }: ClaimedWorkflow): string {
  if (operation === 'top_up_card') return `topup show ${transferId}`;
  if (operation === 'withdraw_from_card') return `withdrawal show ${transferId}`;
  return `card show ${cardId}`;
}

/**
 * The start options of a claim's workflow. A funding's is not started again once it has completed. One that
 * was terminated is: its request waits, and money may be held for it. A status change is always started
 * again: other changes of its card wait for it. A second run does nothing if the claim has its response.
 */
function startOptions(workflow: ClaimedWorkflow) {
  const { operation, cardId, partnerId, mode, taskQueue } = workflow;
  const { title, hasDeadline } = WORKFLOWS[operation];
  return {
    taskQueue,
    workflowId: claimedWorkflowId(workflow),
    workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT_MS,
    workflowIdConflictPolicy: 'USE_EXISTING',
    workflowIdReusePolicy: hasDeadline ? 'ALLOW_DUPLICATE_FAILED_ONLY' : 'ALLOW_DUPLICATE',
    staticSummary: `${title} ${cardId} (${mode})`,
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

/**
 * Temporal's name for the status, in lower case; `not_found` if the workflow does not exist or was deleted.
 */
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
