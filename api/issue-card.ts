import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import { acceptIssuance } from '../commands/accept-issuance.ts';
import { forgetClaim, readClaimResponse } from '../commands/claim-response.ts';
import type { IssuanceContext } from '../commands/command-context.ts';
import type { StoredResponse } from '../commands/idempotency-response.ts';
import { openIssuance } from '../commands/open-issuance.ts';
import { ApiError } from '../domain/api-error.ts';
import {
  awaitFirstAnswer,
  type IssueCardStart,
  startIssueCard,
} from '../workflows/client/start-issue-card.ts';
import { whileLeased } from './while-leased.ts';

const START_TIMEOUT_MS = 3_000;

export interface IssuingDependencies extends IssuanceContext {
  client: Client;
  logger: Logger;
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
  const { claimId } = start;
  const answer = await whileLeased(dependencies, claimId, () => firstAnswer(dependencies, start));
  // decisions.md, "Idempotency": a 400 is not kept, though this one took the account's fees to find.
  if (answer.status === 400) await forgetClaim(dependencies.orm, claimId);
  return answer;
}

async function firstAnswer(
  dependencies: IssuingDependencies,
  start: IssueCardStart,
): Promise<StoredResponse> {
  const state = await awaitFirstAnswer(dependencies.client, start, dependencies.cardCreationWaitMs);
  const answer = state === 'over' ? await readClaimResponse(dependencies, start.claimId) : null;
  return answer ?? (await answerMeanwhile(dependencies, start));
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
