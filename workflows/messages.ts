import { defineQuery, defineSignal } from '@temporalio/workflow';
import type { Decision } from '../domain/decision.ts';
import type { ChainName, DepositDecision } from '../domain/deposit.ts';
import type { DeliveryStatus } from '../domain/event.ts';
import type { TransferDirection } from '../domain/transfer.ts';

/**
 * The input of the workflows of POST /cards, topups and withdrawals. It has nothing personal: the request is
 * sealed in the claim's row.
 */
export interface NetworkOperationInput {
  claimId: string;
  /** How long the network may take before the operation waits for an operator. */
  deadlineMs: number;
}

/** The input of the workflow of freeze, unfreeze and block. */
export interface ChangeCardStatusInput {
  claimId: string;
}
/** How long a status change may take before a person should look at it. */
export const STATUS_CHANGE_PATIENCE_MS = 600_000;

/** The input of deliverWebhook, which a failed attempt starts together with the signal `progress`. */
export interface DeliverWebhookInput {
  eventId: string;
  endpointId: string;
}

/** The state of an event, from its row. */
export interface DeliveryProgress {
  status: Exclude<DeliveryStatus, 'pending' | 'no_endpoint'>;
  /** How many attempts there were. A message with fewer than the workflow knows about is outdated. */
  attemptCount: number;
  /** If `retrying`: the time until the next attempt. */
  nextAttemptInMs: number;
  /** The last attempt's short code. */
  error: string | null;
}

/** What the workflows are, to those who start them. */
export type NetworkOperationWorkflow = (input: NetworkOperationInput) => Promise<unknown>;
export type ChangeCardStatusWorkflow = (input: ChangeCardStatusInput) => Promise<unknown>;
export type DeliverWebhookWorkflow = (input: DeliverWebhookInput) => Promise<unknown>;

export const ISSUE_CARD = 'issueCard';
export const TOP_UP_CARD = 'topUpCard';
export const WITHDRAW_FROM_CARD = 'withdrawFromCard';
export const CHANGE_CARD_STATUS = 'changeCardStatus';
export const DELIVER_WEBHOOK = 'deliverWebhook';

export const issueCardWorkflowId = (cardId: string): string => `issue-card/${cardId}`;
export const transferWorkflowId = (direction: TransferDirection, transferId: string): string =>
  `${direction === 'topup' ? 'top-up' : 'withdraw'}/${transferId}`;
export const changeCardStatusWorkflowId = (cardId: string, claimId: string): string =>
  `card-status/${cardId}/${claimId}`;

/** The id of the object that a workflow is about: an issuance's card, or a transfer. */
export const parseWorkflowId = (workflowId: string): string => workflowId.split('/')[1] ?? workflowId;

export const deliverWebhookWorkflowId = (eventId: string, endpointId: string): string =>
  `webhook/${eventId}/${endpointId}`;

/** A hint that the network has news. The workflow asks the network for it. */
export const networkResult = defineSignal('networkResult');

/**
 * A decision on an operation that is past its deadline. The database decides whether it is, and whether to
 * accept the decision.
 */
export const resolveOperationSignal = defineSignal<[Decision]>('resolve');

/** The state of an issuance or a transfer that the network has not decided. Times are ISO 8601. */
export interface NetworkOperationState {
  /** How often the network was asked. */
  asked: number;
  /** Null before the first request. */
  lastAnswer: 'accepted' | 'no_answer' | null;
  lastAskedAt: string | null;
  nextAskAt: string | null;
  deadline: string;
  /** Whether it is waiting for an operator. */
  overdue: boolean;
}
export const networkOperationState = defineQuery<NetworkOperationState>('state');

/** Tells a delivery the state of its event. */
export const progress = defineSignal<[DeliveryProgress]>('progress');

/**
 * Sends an event again now, whether it is waiting for its next attempt or was given up. The schedule starts
 * over.
 */
export const requeue = defineSignal('requeue');

/** The input of the workflow of a new deposit address. */
export interface WatchDepositInput {
  depositId: string;
  /**
   * Set if this run continues another: the version of the row that run showed, its remark on it, and the
   * decisions it had yet to apply.
   */
  continued?: { version: number; remark: string; told: SentDecision[] };
}
/**
 * A decision that came by signal, or null if it was malformed, and the version it is about, or null if none
 * was shown yet.
 */
export interface SentDecision {
  decision: DepositDecision | null;
  version: number | null;
}
export interface ScanChainInput {
  network: ChainName;
}

export const WATCH_DEPOSIT = 'watchDeposit';
export const SCAN_CHAIN = 'scanChain';

export const watchDepositWorkflowId = (depositId: string): string => `deposit/${depositId}`;
/** One for each chain and installation. The prefix of the task queues keeps installations apart. */
export const scanChainWorkflowId = (network: ChainName, taskQueuePrefix: string): string =>
  `${taskQueuePrefix}scan-chain/${network}`;

/** A hint that a deposit's row has changed; the workflow reads it. */
export const depositChanged = defineSignal('changed');

/** A decision on a deposit in review. The database decides whether to accept it. */
export const resolveDepositSignal = defineSignal<[DepositDecision]>('resolve');
