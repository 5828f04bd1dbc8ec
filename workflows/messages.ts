import { defineSignal, defineUpdate } from '@temporalio/workflow';

/** What POST /cards starts. Nothing personal: the request lies sealed in the claim's row. */
export interface IssueCardInput {
  claimId: string;
  /** How long the network may take before the issuance waits for an operator. */
  deadlineMs: number;
}

export const ISSUE_CARD = 'issueCard';

/** The workflow's id from the card's. */
export const issueCardWorkflowId = (cardId: string): string => `issue-card/${cardId}`;

/** Completes as soon as the claim has an answer. The answer itself is in the claim. */
export const firstAnswer = defineUpdate<void>('firstAnswer');

/** A hint from the network that there is news; the workflow asks for it. */
export const networkResult = defineSignal('networkResult');

export interface IssuanceDecision {
  outcome: 'issued' | 'failed';
}

/** An operator's decision on an issuance that is past its deadline; without effect before that. */
export const resolveIssuance = defineSignal<[IssuanceDecision]>('resolve');
