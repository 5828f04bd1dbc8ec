import { beginStatusChange } from '../commands/card-status/change-status.ts';
import type { StoredResponse } from '../commands/idempotency/idempotency-response.ts';
import { ApiError } from '../domain/api-error.ts';
import type { StatusChangeOperation } from '../domain/card-status.ts';
import type { Mode } from '../domain/mode.ts';
import { type AnsweringDependencies, answerClaimed } from './http/answer-claimed.ts';
import { isOutage } from './http/errors.ts';

export interface ClaimedStatusChange {
  claimId: string;
  partnerId: string;
  mode: Mode;
  cardId: string;
  operation: StatusChangeOperation;
}

/**
 * Starts or joins a change of a live card's status and returns its answer. If no worker gets to it in time, it begins
 * here, so that a refusal is still an answer. If it takes longer than the waiting time, it goes on.
 * @throws ApiError `unavailable` if the outcome is not known yet.
 */
export async function changeCardStatus(
  dependencies: AnsweringDependencies,
  claim: ClaimedStatusChange,
  passTurn: () => void,
): Promise<StoredResponse> {
  const { taskQueue } = dependencies;
  try {
    return await answerClaimed(
      dependencies,
      { ...claim, taskQueue, deadlineMs: 0 },
      {
        passTurn,
        async answer() {
          await beginStatusChange(dependencies, claim.claimId);
        },
      },
    );
  } catch (error) {
    // The claim stands: whatever can't be reached now, the sweep starts its work later.
    const goesOn = error instanceof ApiError ? error.code === 'unavailable' : isOutage(error);
    throw goesOn ? new ApiError('unavailable', { message: GOES_ON }) : error;
  }
}

const GOES_ON =
  'The card network has not confirmed the change yet, and we are still waiting for it. To learn the outcome, read the ' +
  'card, wait for its event, or retry with the same Idempotency-Key.';
