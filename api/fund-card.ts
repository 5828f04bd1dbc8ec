import {
  acceptFunding,
  beginFunding,
  type FundingContext,
  type FundingKind,
  type FundingRow,
} from '../commands/funding/funding.ts';
import { ISSUANCE } from '../commands/funding/issuance.ts';
import { TOPUP } from '../commands/funding/topup.ts';
import type { StoredResponse } from '../commands/idempotency/response.ts';
import type { Tenant } from '../domain/mode.ts';
import type { ClaimedWorkflow } from '../temporal/claimed-workflow.ts';
import { type AnsweringDependencies, answerClaimed } from './http/claimed-work.ts';

export interface FundingDependencies extends AnsweringDependencies, FundingContext {
  issuanceDeadlineMs: number;
  topUpDeadlineMs: number;
}

type Claimed = Tenant & { claimId: string; cardId: string };

/**
 * Starts or joins a claim's issuance and returns its response. {@link topUpCard} does the same for a top-up.
 * @throws ServiceError, ApiError as answerClaimed
 */
export function issueCard(
  dependencies: FundingDependencies,
  claim: Claimed,
  passTurn: () => void,
): Promise<StoredResponse> {
  const { taskQueue, issuanceDeadlineMs: deadlineMs } = dependencies;
  return fundCard(
    dependencies,
    ISSUANCE,
    { ...claim, operation: 'create_card', taskQueue, deadlineMs },
    passTurn,
  );
}

export function topUpCard(
  dependencies: FundingDependencies,
  claim: Claimed & { topUpId: string },
  passTurn: () => void,
): Promise<StoredResponse> {
  const { taskQueue, topUpDeadlineMs: deadlineMs } = dependencies;
  return fundCard(
    dependencies,
    TOPUP,
    { ...claim, operation: 'top_up_card', taskQueue, deadlineMs },
    passTurn,
  );
}

/**
 * If the outcome takes too long, the response is 202. If no worker has held the money by then, it is held here, so that every
 * 202 has money behind it.
 */
function fundCard(
  dependencies: FundingDependencies,
  kind: FundingKind<FundingRow>,
  workflow: ClaimedWorkflow,
  passTurn: () => void,
): Promise<StoredResponse> {
  return answerClaimed(dependencies, workflow, {
    passTurn,
    async answer() {
      await beginFunding(kind, dependencies, workflow.claimId);
      await acceptFunding(kind, dependencies, workflow.claimId);
    },
  });
}
