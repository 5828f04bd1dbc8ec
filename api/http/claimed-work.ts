import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { ApiError } from '../../domain/api-error.ts';
import { describeError } from '../../platform/process/describe-error.ts';
import { forgetClaim, renewLease } from '../../requests/claim.ts';
import type { ClaimedWorkflow, Started } from '../../requests/claimed-workflow.ts';
import type { CommandContext } from '../../requests/command-context.ts';
import { readClaimResponse, type StoredResponse } from '../../requests/response.ts';
import type { LiveWork } from './live-work.ts';
import type { ResponseHints } from './response-hints.ts';

/** How long a start through the task queue keeps its turn: nothing reports when its money is held. */
const QUEUED_TURN_MS = 100;

export interface RespondingDependencies extends CommandContext {
  liveWork: Pick<LiveWork, 'start'>;
  logger: Logger;
  responseHints: ResponseHints;
  /** Called after a commit, so that events are sent without delay. */
  eventsWritten(): void;
  taskQueue: string;
  /** How long a request waits for the outcome before it answers without one. */
  cardCreationWaitMs: number;
}

/** What a request can do while its claim's work is in progress. */
interface Meanwhile {
  /**
   * If the outcome takes too long: stores a response in the claim, for operations that can be answered before
   * their outcome.
   */
  answer(): Promise<void>;
  /** Gives the turn to another request, because the rest of this one only waits for the network. */
  passTurn(): void;
}

/**
 * Starts or joins a claim's work and returns its response. If that takes too long, the work continues without
 * the request.
 * @throws ServiceError if Temporal can't be reached, ApiError `unavailable` if the outcome is unknown.
 */
export async function respondToClaimed(
  dependencies: RespondingDependencies,
  workflow: ClaimedWorkflow,
  meanwhile: Meanwhile,
): Promise<StoredResponse> {
  const { claimId } = workflow;
  const response = await whileLeased(dependencies, claimId, async () => {
    const started = dependencies.liveWork.start(workflow);
    const inTime = await responseInTime(dependencies, workflow, started, meanwhile.passTurn);
    if (inTime !== null) return inTime;
    await started;
    await meanwhile.answer();
    const late = await readClaimResponse(dependencies, claimId);
    if (late === null) throw new ApiError('unavailable');
    return late;
  });
  // A 400 is not kept (docs/partners/idempotency.md), not even this one, which needed the account's fees to
  // be found.
  if (response.status === 400) await forgetClaim(dependencies.orm, { claimId });
  return response;
}

/** @returns null if there is none within the time limit, or the work had ended without one */
async function responseInTime(
  dependencies: RespondingDependencies,
  workflow: ClaimedWorkflow,
  started: Promise<Started>,
  passTurn: () => void,
): Promise<StoredResponse | null> {
  const waiting = new AbortController();
  try {
    return await dependencies.responseHints.hear(workflow, ({ answered, opened }) => {
      void opened.then(passTurn);
      const overOrAnswered = started.then((state) => {
        if (state === 'over') return readClaimResponse(dependencies, workflow.claimId);
        if (state === 'queued') setTimeout(passTurn, QUEUED_TURN_MS).unref();
        return answered;
      });
      const late = sleep(dependencies.cardCreationWaitMs, null, { signal: waiting.signal });
      return Promise.race([answered, overOrAnswered, late]);
    });
  } finally {
    waiting.abort();
  }
}

/** How long a claim's lease lasts, and how often it is renewed. */
export const LEASE_MS = 5_000;
const RENEWAL_MS = 1_000;

/**
 * Runs a claim's work and renews its lease meanwhile. If the work fails, the lease ends with it, so that a
 * retry need not wait for it to expire.
 */
async function whileLeased<T>(
  { orm, logger }: Pick<RespondingDependencies, 'orm' | 'logger'>,
  claimId: string,
  work: () => Promise<T>,
): Promise<T> {
  // A failed renewal is no reason to stop: if the lease expires, a retry joins the same operation.
  const renew = (leaseMs: number) =>
    renewLease(orm, { claimId, leaseMs }).catch((error: unknown) => {
      logger.warn({ claimId, error: describeError(error) }, "could not renew a claim's lease");
    });
  const renewal = setInterval(() => renew(LEASE_MS), RENEWAL_MS);
  try {
    return await work();
  } catch (error) {
    clearInterval(renewal);
    await renew(0);
    throw error;
  } finally {
    clearInterval(renewal);
  }
}
