import { defineSignal, defineUpdate } from '@temporalio/workflow';

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

/** What a failed first attempt of an event starts, or an operator's `requeue`. */
export interface DeliverWebhookInput {
  eventId: string;
  /** How long to wait after each failed attempt; one attempt more than there are delays is made. */
  delaysMs: number[];
  /** Whether the first attempt has been made. */
  attempted: boolean;
}

export const ISSUE_CARD = 'issueCard';
export const TOP_UP_CARD = 'topUpCard';
export const CHANGE_CARD_STATUS = 'changeCardStatus';
export const DELIVER_WEBHOOK = 'deliverWebhook';

export const issueCardWorkflowId = (cardId: string): string => `issue-card/${cardId}`;
export const topUpCardWorkflowId = (topupId: string): string => `top-up/${topupId}`;
export const changeCardStatusWorkflowId = (cardId: string, claimId: string): string =>
  `card-status/${cardId}/${claimId}`;

export const deliverWebhookWorkflowId = (eventId: string): string => `webhook/${eventId}`;

/** Completes as soon as the claim has an answer. The answer itself is in the claim. */
export const firstAnswer = defineUpdate<void>('firstAnswer');

/** A hint from the network that there is news; the workflow asks for it. */
export const networkResult = defineSignal('networkResult');

export interface IssuanceDecision {
  outcome: 'issued' | 'failed';
}
export interface TopUpDecision {
  outcome: 'succeeded' | 'failed';
}

/** An operator's decision on what is past its deadline; without effect before that. */
export const resolveIssuance = defineSignal<[IssuanceDecision]>('resolve');
export const resolveTopUp = defineSignal<[TopUpDecision]>('resolve');

/** Starts the attempts of an event again from the first, whether it waits for its next one or was given up. */
export const requeue = defineSignal('requeue');
