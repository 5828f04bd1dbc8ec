import type { Client } from '@temporalio/client';
import { ISSUE_CARD, type IssuanceDecision, resolveIssuance } from '../messages.ts';
import { type IssueCardStart, startOptions } from './start-issue-card.ts';

/**
 * Hands an operator's decision to an issuance that is past its deadline. Where its workflow has ended another one is
 * started with it, whose deadline has passed from the start.
 * @throws ServiceError where Temporal can't be reached.
 */
export async function resolveIssueCard(
  client: Client,
  issuance: Omit<IssueCardStart, 'deadlineMs'>,
  decision: IssuanceDecision,
): Promise<void> {
  await client.workflow.signalWithStart(ISSUE_CARD, {
    ...startOptions({ ...issuance, deadlineMs: 0 }),
    workflowIdReusePolicy: 'ALLOW_DUPLICATE',
    signal: resolveIssuance,
    signalArgs: [decision],
  });
}
