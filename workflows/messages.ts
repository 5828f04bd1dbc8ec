import { defineQuery, defineSignal } from '@temporalio/workflow';
import type { IssuanceDecision, TopUpDecision } from '../domain/decision.ts';
import type { DepositDecision, TronNetwork } from '../domain/deposit.ts';
import type { DeliveryStatus } from '../domain/event.ts';

/** What POST /cards and POST topups start. Nothing personal: the request lies sealed in the claim's row. */
export interface NetworkOperationInput {
  claimId: string;
  /** How long the network may take before the operation waits for an operator. */
  deadlineMs: number;
}

/** What freeze, unfreeze and block start. */
export interface ChangeCardStatusInput {
  claimId: string;
}
/** How long such a change may take before a person should look at it. */
export const STATUS_CHANGE_PATIENCE_MS = 600_000;

/** The input of deliverWebhook, which a failed attempt starts together with the signal `progress`. */
export interface DeliverWebhookInput {
  eventId: string;
}

/** The state of an event, from its row. */
export interface DeliveryProgress {
  status: Exclude<DeliveryStatus, 'pending' | 'no_endpoint'>;
  /** How many attempts there were. A message with fewer than the workflow knows of is outdated. */
  attemptCount: number;
  /** If `retrying`: the time until the next attempt. */
  nextAttemptInMs: number;
  /** The last attempt's short code. */
  error: string | null;
}

export const ISSUE_CARD = 'issueCard';
export const TOP_UP_CARD = 'topUpCard';
export const CHANGE_CARD_STATUS = 'changeCardStatus';
export const DELIVER_WEBHOOK = 'deliverWebhook';

export const issueCardWorkflowId = (cardId: string): string => `issue-card/${cardId}`;
export const topUpCardWorkflowId = (topupId: string): string => `top-up/${topupId}`;
export const changeCardStatusWorkflowId = (cardId: string, claimId: string): string =>
  `card-status/${cardId}/${claimId}`;

/** The id of what a workflow is about: of an issuance its card, of a top-up itself. */
export const idOfWorkflow = (workflowId: string): string => workflowId.split('/')[1] ?? workflowId;

export const deliverWebhookWorkflowId = (eventId: string): string => `webhook/${eventId}`;

/** A hint from the network that there is news; the workflow asks for it. */
export const networkResult = defineSignal('networkResult');

/** A decision on what is past its deadline. Whether it is, and whether this may be, the database says. */
export const resolveIssuance = defineSignal<[IssuanceDecision]>('resolve');
export const resolveTopUp = defineSignal<[TopUpDecision]>('resolve');

/** How an issuance or a top-up stands that the network has not decided. Times are ISO 8601. */
export interface NetworkOperationState {
  /** How often the network was asked. */
  asked: number;
  /** Null before the first request. */
  lastAnswer: 'accepted' | 'no_answer' | null;
  lastAskedAt: string | null;
  nextAskAt: string | null;
  deadline: string;
  /** Whether it waits for an operator. */
  overdue: boolean;
}
export const networkOperationState = defineQuery<NetworkOperationState>('state');

/** Tells a delivery the state of its event. */
export const progress = defineSignal<[DeliveryProgress]>('progress');

/** Sends an event again now, whether it waits for its next attempt or was given up; the schedule starts over. */
export const requeue = defineSignal('requeue');

/** What an address that was given out starts. */
export interface WatchDepositInput {
  depositId: string;
  /**
   * Of a run that goes on with another one's work: which version of the row that showed, what it
   * said beside it, and what it has yet to see to.
   */
  continued?: { version: number; remark: string; told: ToldDecision[] };
}
/** A decision that came by signal, null where it is none, and the version it is about, null before any was shown. */
export interface ToldDecision {
  decision: DepositDecision | null;
  version: number | null;
}
export interface ScanChainInput {
  network: TronNetwork;
}

export const WATCH_DEPOSIT = 'watchDeposit';
export const SCAN_CHAIN = 'scanChain';

export const watchDepositWorkflowId = (depositId: string): string => `deposit/${depositId}`;
/** One for each chain and installation, whose prefix of task queues keeps it apart from others. */
export const scanChainWorkflowId = (network: TronNetwork, taskQueuePrefix: string): string =>
  `${taskQueuePrefix}scan-chain/${network}`;

/** A hint that a deposit's row has changed; the workflow reads it. */
export const depositChanged = defineSignal('changed');

/** A decision on what waits for review. Whether it may be, the database says. */
export const resolveDeposit = defineSignal<[DepositDecision]>('resolve');
