import type { Client } from '@temporalio/client';
import { TypedSearchAttributes } from '@temporalio/common';
import type { ChainName } from '../domain/deposit.ts';
import type { Mode } from '../domain/mode.ts';
import {
  depositIdAttribute,
  modeAttribute,
  partnerIdAttribute,
} from '../platform/temporal/search-attributes.ts';
import {
  depositChanged,
  SCAN_CHAIN,
  type ScanChainInput,
  scanChainWorkflowId,
  WATCH_DEPOSIT,
  type WatchDepositInput,
  watchDepositWorkflowId,
} from '../workflows/messages.ts';

/** After this, a task that went to a frozen worker goes to another one. */
const WORKFLOW_TASK_TIMEOUT_MS = 5_000;

/**
 * Tells a deposit's workflow that the deposit's row has changed, and starts the workflow if it isn't running.
 * @throws ServiceError if Temporal can't be reached.
 */
export async function notifyDeposit(
  client: Client,
  { depositId, partnerId, mode }: { depositId: string; partnerId: string; mode: Mode },
  taskQueue: string,
): Promise<void> {
  const args: [WatchDepositInput] = [{ depositId }];
  await client.workflow.signalWithStart(WATCH_DEPOSIT, {
    workflowId: watchDepositWorkflowId(depositId),
    taskQueue,
    workflowIdReusePolicy: 'ALLOW_DUPLICATE',
    args,
    signal: depositChanged,
    workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT_MS,
    staticSummary: `Deposit ${depositId}`,
    staticDetails: `Partner \`${partnerId}\`. On the command line: \`npm run operator -- deposit show ${depositId}\`.`,
    // If tasks queue up in Temporal, partners take turns.
    priority: { fairnessKey: partnerId },
    typedSearchAttributes: new TypedSearchAttributes([
      { key: partnerIdAttribute, value: partnerId },
      { key: modeAttribute, value: mode },
      { key: depositIdAttribute, value: depositId },
    ]),
  });
}

/**
 * Makes sure that a chain's scan is running, and starts it if it isn't, whatever ended it.
 * @throws ServiceError if Temporal can't be reached.
 */
export async function ensureScan(
  client: Client,
  network: ChainName,
  { taskQueuePrefix, taskQueue }: { taskQueuePrefix: string; taskQueue: string },
): Promise<void> {
  const args: [ScanChainInput] = [{ network }];
  await client.workflow.start(SCAN_CHAIN, {
    workflowId: scanChainWorkflowId(network, taskQueuePrefix),
    taskQueue,
    args,
    workflowIdConflictPolicy: 'USE_EXISTING',
    workflowIdReusePolicy: 'ALLOW_DUPLICATE',
    workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT_MS,
    staticSummary: `Read the blocks of ${network}`,
    staticDetails: 'On the command line: `npm run operator -- tron status`.',
  });
}
