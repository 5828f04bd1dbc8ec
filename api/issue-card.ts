import type { IssuanceContext } from '../commands/command-context.ts';
import { acceptIssuance } from '../commands/funding/accept-issuance.ts';
import { openIssuance } from '../commands/funding/open-issuance.ts';
import type { TestIssuanceContext } from '../commands/funding/test-operations.ts';
import type { StoredResponse } from '../commands/idempotency/idempotency-response.ts';
import { siblingId } from '../domain/ids.ts';
import type { Mode } from '../domain/mode.ts';
import { type AnsweringDependencies, answerClaimed } from './http/answer-claimed.ts';

export interface IssuingDependencies extends AnsweringDependencies, IssuanceContext, TestIssuanceContext {
  issuanceDeadlineMs: number;
}

/**
 * Starts or joins the issuance of a claim and gives its answer. When the outcome takes too long the answer is 202; the
 * hold is made here then if no worker has got to it, so that even this 202 has money behind it.
 * @throws ServiceError, ApiError as answerClaimed
 */
export function issueCard(
  dependencies: IssuingDependencies,
  claim: { claimId: string; partnerId: string; mode: Mode },
  passTurn: () => void,
): Promise<StoredResponse> {
  const { taskQueue, issuanceDeadlineMs: deadlineMs } = dependencies;
  const cardId = siblingId('card', claim.claimId);
  const workflow = { ...claim, operation: 'create_card', cardId, taskQueue, deadlineMs } as const;
  return answerClaimed(dependencies, workflow, {
    passTurn,
    async answer() {
      await openIssuance(dependencies, claim.claimId);
      await acceptIssuance(dependencies, claim.claimId);
    },
  });
}
