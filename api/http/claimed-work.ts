import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { CommandContext } from '../../commands/command-context.ts';
import { forgetClaim, renewLease } from '../../commands/idempotency/claim.ts';
import {
  type ResponseNotice,
  readClaimResponse,
  type StoredResponse,
} from '../../commands/idempotency/response.ts';
import { ApiError } from '../../domain/api-error.ts';
import { describeError } from '../../process/describe-error.ts';
import type { ClaimedWorkflow, Started } from '../../temporal/claimed-workflow.ts';
import type { AnswerHints, LiveWork } from './live-work.ts';

/** How long a start through the queue keeps its turn: nothing reports when its money is held. */
const QUEUED_TURN_MS = 100;

export interface AnsweringDependencies extends CommandContext {
  liveWork: Pick<LiveWork, 'start'>;
  logger: Logger;
  answerHints: AnswerHints;
  /** Called after a commit, so that events are sent without delay. */
  eventsWritten(): void;
  taskQueue: string;
  /** How long a request waits for the outcome before it answers without one. */
  cardCreationWaitMs: number;
}

/** What a request does while its claim's work is in progress. */
interface Meanwhile {
  /** Stores an answer in the claim if the outcome takes too long, if it can have one before the outcome. */
  answer(): Promise<void>;
  /** Gives the turn to another request: the rest of this one only waits for the network. */
  passTurn(): void;
}

/**
 * Starts or joins a claim's work and returns its answer. If that takes too long, the work continues without the request.
 * @throws ServiceError if Temporal can't be reached, ApiError `unavailable` if the outcome is unknown.
 */
export async function answerClaimed(
  dependencies: AnsweringDependencies,
  workflow: ClaimedWorkflow,
  meanwhile: Meanwhile,
): Promise<StoredResponse> {
  const { liveWork, ring } = dependencies;
  const { claimId } = workflow;
  const answer = await whileLeased(dependencies, claimId, async (foundAnswered) => {
    const started = liveWork.start(workflow);
    const { passTurn } = meanwhile;
    const first = await firstWord(dependencies, claimId, { started, foundAnswered, passTurn });
    if (first !== 'late') {
      const hinted = typeof first === 'string' ? null : first.open(ring);
      const given = hinted ?? (await readClaimResponse(dependencies, claimId));
      if (given !== null) return given;
    }
    await started;
    await meanwhile.answer();
    const late = await readClaimResponse(dependencies, claimId);
    if (late === null) throw new ApiError('unavailable');
    return late;
  });
  // decisions.md, "Idempotency": a 400 is not kept, though this one took the account's fees to find.
  if (answer.status === 400) await forgetClaim(dependencies.orm, claimId);
  return answer;
}

interface Waiting {
  started: Promise<Started>;
  /** Settles when who gives the claim's signs of life finds it answered. */
  foundAnswered: Promise<'answered'>;
  passTurn(): void;
}

/** What is known of a claim first: its answer, that its work is over, or that it takes too long. */
async function firstWord(
  { answerHints, cardCreationWaitMs }: AnsweringDependencies,
  claimId: string,
  { started, foundAnswered, passTurn }: Waiting,
): Promise<ResponseNotice | 'answered' | 'over' | 'late'> {
  const waiting = new AbortController();
  try {
    return await answerHints.hear(claimId, ({ answered, opened }) => {
      void opened.then(passTurn);
      const overOrAnswered = started.then(async (state) => {
        if (state === 'over') return state;
        if (state === 'queued') setTimeout(passTurn, QUEUED_TURN_MS).unref();
        return answered;
      });
      const late = sleep(cardCreationWaitMs, 'late' as const, { signal: waiting.signal });
      return Promise.race([answered, foundAnswered, overOrAnswered, late]);
    });
  } finally {
    waiting.abort();
  }
}

/** How long a claim counts as alive without a sign of life, and how often one is given. */
export const LEASE_MS = 5_000;
const RENEWAL_MS = 1_000;

/**
 * Runs the work of a claim and gives signs of life meanwhile. Where the work fails, the lease ends with it: a retry need
 * not wait for it to run out.
 * @param work is told when a sign of life finds the claim answered, should every hint of that have got lost
 */
async function whileLeased<T>(
  { orm, logger }: Pick<AnsweringDependencies, 'orm' | 'logger'>,
  claimId: string,
  work: (foundAnswered: Promise<'answered'>) => Promise<T>,
): Promise<T> {
  // A sign that can't be given is no reason to stop: should the lease run out, a retry joins the same operation.
  const renew = async (leaseMs: number) => {
    try {
      if (!(await renewLease(orm, claimId, leaseMs))) found.resolve('answered');
    } catch (error) {
      logger.warn({ claimId, error: describeError(error) }, "could not renew a claim's lease");
    }
  };
  const found = Promise.withResolvers<'answered'>();
  const renewal = setInterval(() => renew(LEASE_MS), RENEWAL_MS);
  try {
    return await work(found.promise);
  } catch (error) {
    clearInterval(renewal);
    await renew(0);
    throw error;
  } finally {
    clearInterval(renewal);
  }
}
