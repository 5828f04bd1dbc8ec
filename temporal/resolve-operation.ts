import type { Client } from '@temporalio/client';
import type { IssuanceDecision, TopUpDecision } from '../domain/decision.ts';
import { resolveIssuance, resolveTopUp } from '../workflows/messages.ts';
import { type ClaimedWorkflow, identityOf, startOptions } from './claimed-workflow.ts';

export type Decision =
  | { operation: 'create_card'; decision: IssuanceDecision }
  | { operation: 'top_up_card'; decision: TopUpDecision };

/**
 * Hands an operator's decision to an operation that is past its deadline. Where its workflow has ended another one is
 * started with it, whose deadline has passed from the start.
 * @throws ServiceError where Temporal can't be reached.
 */
export async function resolveOperation(
  client: Client,
  claim: Omit<ClaimedWorkflow, 'deadlineMs' | 'operation'>,
  decided: Decision,
): Promise<void> {
  const workflow = { ...claim, operation: decided.operation, deadlineMs: 0 };
  const options = { ...startOptions(workflow), workflowIdReusePolicy: 'ALLOW_DUPLICATE' } as const;
  const { type } = identityOf(workflow);
  if (decided.operation === 'create_card') {
    const signalArgs: [IssuanceDecision] = [decided.decision];
    await client.workflow.signalWithStart(type, { ...options, signal: resolveIssuance, signalArgs });
  } else {
    const signalArgs: [TopUpDecision] = [decided.decision];
    await client.workflow.signalWithStart(type, { ...options, signal: resolveTopUp, signalArgs });
  }
}
