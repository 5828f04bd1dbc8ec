import { acceptTopUp } from '../commands/funding/accept-top-up.ts';
import { openTopUp } from '../commands/funding/open-top-up.ts';
import type { StoredResponse } from '../commands/idempotency/idempotency-response.ts';
import type { Mode } from '../domain/mode.ts';
import { type AnsweringDependencies, answerClaimed } from './http/answer-claimed.ts';

export interface TopUpDependencies extends AnsweringDependencies {
  topUpDeadlineMs: number;
  /** Whether live mode has a network; without one it can load nothing. */
  liveNetworkConfigured: boolean;
}

/**
 * Starts or joins the top-up of a claim and gives its answer. When the outcome takes too long the answer is 202; the
 * hold is made here then if no worker has got to it, so that even this 202 has money behind it.
 * @throws ServiceError, ApiError as answerClaimed
 */
export function topUpCard(
  dependencies: TopUpDependencies,
  claim: { claimId: string; cardId: string; partnerId: string; mode: Mode },
  passTurn: () => void,
): Promise<StoredResponse> {
  const { taskQueue, topUpDeadlineMs: deadlineMs } = dependencies;
  const workflow = { ...claim, operation: 'top_up_card', taskQueue, deadlineMs } as const;
  return answerClaimed(dependencies, workflow, {
    passTurn,
    async answer() {
      await openTopUp(dependencies, claim.claimId);
      await acceptTopUp(dependencies, claim.claimId);
    },
  });
}
