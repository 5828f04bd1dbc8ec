import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import { forgetClaim, readClaimResponse } from '../commands/claim-response.ts';
import type { CommandContext } from '../commands/command-context.ts';
import type { StoredResponse } from '../commands/idempotency-response.ts';
import { ApiError } from '../domain/api-error.ts';
import type { ClaimedWorkflow } from '../workflows/client/claimed-workflow.ts';
import { awaitFirstAnswer, startClaimed } from '../workflows/client/start-claimed.ts';
import type { AnswerHints } from './answer-hints.ts';
import { whileLeased } from './while-leased.ts';

const START_TIMEOUT_MS = 3_000;

export interface AnsweringDependencies extends CommandContext {
  client: Client;
  logger: Logger;
  answerHints: AnswerHints;
  /** Called after a commit, so that events are sent without delay. */
  eventsWritten(): void;
  taskQueue: string;
  /** How long a request waits for the outcome before it answers without one. */
  cardCreationWaitMs: number;
}

/**
 * Starts or joins the work of a claim and gives its answer. When that takes too long the work goes on.
 * @param answerMeanwhile then gives the claim an answer, if there can be one before the outcome.
 * @throws ServiceError where Temporal can't be reached, ApiError `unavailable` where the outcome is unknown.
 */
export async function answerClaimed(
  dependencies: AnsweringDependencies,
  workflow: ClaimedWorkflow,
  answerMeanwhile: () => Promise<void>,
): Promise<StoredResponse> {
  const { client, answerHints, cardCreationWaitMs } = dependencies;
  const { claimId } = workflow;
  const answer = await whileLeased(dependencies, claimId, async () => {
    const updated = awaitFirstAnswer(client, workflow, cardCreationWaitMs);
    const soonest = await answerHints.sooner(claimId, updated);
    if (soonest !== 'pending') {
      const hinted = soonest === 'over' ? null : soonest.open(dependencies.ring);
      const given = hinted ?? (await readClaimResponse(dependencies, claimId));
      if (given !== null) return given;
    }
    await client.withDeadline(Date.now() + START_TIMEOUT_MS, () => startClaimed(client, workflow));
    await answerMeanwhile();
    const late = await readClaimResponse(dependencies, claimId);
    if (late === null) throw new ApiError('unavailable');
    return late;
  });
  // decisions.md, "Idempotency": a 400 is not kept, though this one took the account's fees to find.
  if (answer.status === 400) await forgetClaim(dependencies.orm, claimId);
  return answer;
}
