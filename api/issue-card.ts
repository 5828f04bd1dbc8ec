import type { Client } from '@temporalio/client';
import { acceptIssuance } from '../commands/accept-issuance.ts';
import { readClaimResponse, renewLease } from '../commands/claim-response.ts';
import type { IssuanceContext } from '../commands/command-context.ts';
import type { StoredResponse } from '../commands/idempotency-response.ts';
import { openIssuance } from '../commands/open-issuance.ts';
import { ApiError } from '../domain/api-error.ts';
import {
  awaitFirstAnswer,
  type IssueCardStart,
  startIssueCard,
} from '../workflows/client/start-issue-card.ts';

/** How long a claim counts as alive without a sign of life, and how often one is given. */
export const LEASE_MS = 5_000;
const RENEWAL_MS = 2_000;
const START_TIMEOUT_MS = 3_000;

export interface IssuingDependencies extends IssuanceContext {
  client: Client;
  taskQueue: string;
  /** How long POST /cards waits for the outcome before it answers 202. */
  cardCreationWaitMs: number;
  issuanceDeadlineMs: number;
}

/**
 * Starts or joins the issuance of a claim and gives its answer. When the answer takes too long the work goes on and the
 * answer is 202; the hold is made here then if no worker has got to it, so that even this 202 has money behind it.
 * @throws ServiceError where Temporal can't be reached, ApiError `unavailable` where the outcome is unknown.
 */
export async function issueCard(
  dependencies: IssuingDependencies,
  start: IssueCardStart,
): Promise<StoredResponse> {
  const { client, orm, cardCreationWaitMs } = dependencies;
  const renewal = setInterval(() => renewLease(orm, start.claimId, LEASE_MS), RENEWAL_MS);
  try {
    const state = await awaitFirstAnswer(client, start, cardCreationWaitMs);
    const answer = state === 'over' ? await readClaimResponse(dependencies, start.claimId) : null;
    return answer ?? (await answerMeanwhile(dependencies, start));
  } finally {
    clearInterval(renewal);
  }
}

async function answerMeanwhile(
  dependencies: IssuingDependencies,
  start: IssueCardStart,
): Promise<StoredResponse> {
  const { client } = dependencies;
  await client.withDeadline(Date.now() + START_TIMEOUT_MS, () => startIssueCard(client, start));
  await openIssuance(dependencies, start.claimId);
  await acceptIssuance(dependencies, start.claimId);
  const answer = await readClaimResponse(dependencies, start.claimId);
  if (answer === null) throw new ApiError('unavailable');
  return answer;
}
