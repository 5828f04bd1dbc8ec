import {
  CancellationScope,
  condition,
  type SignalDefinition,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import type { NetworkProgress } from '../activities/fundings.ts';
import type { Decision, Verdict, WhyNot } from '../domain/decision.ts';
import { type NetworkOperationInput, networkResult } from './messages.ts';
import { needsAttentionAttribute } from './search-attributes.ts';

const FIRST_POLL_MS = 1_000;
const LONGEST_POLL_MS = 3_600_000;
/** Past the deadline: at 10 events a poll it takes a history 14 years to fill up. */
const LONGEST_OVERDUE_POLL_MS = 86_400_000;

/** The activities of one kind of operation; each takes the claim's id. */
export interface OperationSteps<Outcome extends string> {
  /** Holds the money unless it is held, asks the network, and acts on its answer; fails if there is none. */
  firstRequest(claimId: string): Promise<NetworkProgress>;
  /** The same. @param isHeld whether the money is probably held already */
  request(claimId: string, isHeld: boolean): Promise<NetworkProgress>;
  /** How long the network may still take; 0 if that time is over. */
  flagOverdue(claimId: string): Promise<number>;
  applyResolution(claimId: string, decision: Decision<Outcome>): Promise<Verdict>;
  /** What somebody decides, and what it can be. */
  resolve: SignalDefinition<[Decision<Outcome>]>;
  outcomes: readonly Outcome[];
  /** What the Temporal UI says while it waits for an operator. */
  overdueDetails: string;
}

/**
 * Holds an operation's money, asks the network, and posts on its yes or releases on its definite no. If the network
 * stays silent past the deadline, an operator decides. A request to cancel is not followed, since money is only ever
 * released on a definite no.
 */
export async function runNetworkOperation<Outcome extends string>(
  steps: OperationSteps<Outcome>,
  { claimId, deadlineMs }: NetworkOperationInput,
): Promise<void> {
  let deadline = Date.now() + deadlineMs;
  let overdue = false;
  let hints = 0;
  let decision: Decision<Outcome> | undefined;

  // Most operations end here. What only the others need would cost them: signal handlers, for which signals wait, and a
  // scope that ignores cancellation, without which a cancelled request is repeated.
  const first = await steps.firstRequest(claimId).catch(noAnswer);
  if (first === 'over') return;
  listen();
  await CancellationScope.nonCancellable(() => persist(first));
  setCurrentDetails('');
  if (overdue) upsertSearchAttributes([{ key: needsAttentionAttribute, value: false }]);

  function listen(): void {
    setHandler(networkResult, () => {
      hints += 1;
    });
    setHandler(steps.resolve, (told: Partial<Decision<Outcome>> | null | undefined) => {
      // A signal can carry anything: what is no decision decides nothing.
      const outcome = steps.outcomes.find((known) => known === told?.outcome);
      const networkCardId = told?.networkCardId ?? undefined;
      if (outcome === undefined || !(networkCardId === undefined || isNetworkId(networkCardId))) return;
      // Whether it comes too early the database says, which knows when the operation began and what is configured.
      decision = { outcome, ...(networkCardId !== undefined && { networkCardId }) };
    });
  }

  /** Asks the network until the operation is over. @param first what came of the first request */
  async function persist(first: NetworkProgress | 'unclear'): Promise<void> {
    let heard = 0;
    let progress = first;
    for (let pollMs = FIRST_POLL_MS; progress !== 'over'; pollMs = nextPollMs(pollMs)) {
      if (!overdue && Date.now() >= deadline) await waitForOperator();
      await condition(
        () => hints > heard || decision !== undefined,
        overdue ? pollMs : Math.min(pollMs, deadline - Date.now()),
      );
      if (decision !== undefined && (await isResolvedBy(decision))) return;
      heard = hints;
      progress = await steps.request(claimId, true).catch(noAnswer);
    }
  }

  function nextPollMs(pollMs: number): number {
    return Math.min(pollMs * 2, overdue ? LONGEST_OVERDUE_POLL_MS : LONGEST_POLL_MS);
  }

  async function isResolvedBy(decided: Decision<Outcome>): Promise<boolean> {
    decision = undefined;
    const verdict = await steps.applyResolution(claimId, decided);
    if (verdict.over) return true;
    setCurrentDetails(`${overdue ? `${steps.overdueDetails} ` : ''}${NOT_APPLIED[verdict.because]}`);
    return false;
  }

  async function waitForOperator(): Promise<void> {
    const remainingMs = await steps.flagOverdue(claimId);
    if (remainingMs > 0) {
      deadline = Date.now() + remainingMs;
      return;
    }
    overdue = true;
    upsertSearchAttributes([{ key: needsAttentionAttribute, value: true }]);
    setCurrentDetails(steps.overdueDetails);
  }
}

const NOT_APPLIED: Record<WhyNot, string> = {
  too_early: 'A decision arrived before the deadline and changed nothing.',
  contradicts_the_record:
    'A decision arrived that differs from the recorded one and changed nothing: run `operator … resolve` again.',
  network_away:
    'An operator decided that the card is issued, but the network cannot be reached to look up its id: decide again when ' +
    'it can, or add "networkCardId" to the decision.',
  unknown_to_network:
    'An operator decided that the card is issued, but the network does not know it: add "networkCardId" to the decision.',
  other_id_at_network:
    'An operator decided that the card is issued, but the network has it under a different id.',
  id_of_another_card:
    'An operator decided that the card is issued, but another card already has its "networkCardId".',
};

const isNetworkId = (value: unknown): boolean =>
  typeof value === 'string' && /^[\x21-\x7e]{1,100}$/.test(value);

/** The activity's own retries are used up: still no answer, and so not a no. */
function noAnswer(): 'unclear' {
  return 'unclear';
}
