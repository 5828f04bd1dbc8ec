import {
  allHandlersFinished,
  CancellationScope,
  condition,
  isCancellation,
  patched,
  type SignalDefinition,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import type { Decision, Verdict, WhyNot } from '../domain/decision.ts';
import { firstAnswer, type NetworkOperationInput, networkResult } from './messages.ts';
import { needsAttentionAttribute } from './search-attributes.ts';

const FIRST_POLL_MS = 1_000;
const LONGEST_POLL_MS = 3_600_000;
/** Past the deadline: at 10 events a poll it takes a history 14 years to fill up. */
const LONGEST_OVERDUE_POLL_MS = 86_400_000;

/** `held`: the network decides next. `answered`: the operation is over and its claim has the answer. */
type Opening = 'held' | 'answered';
/** `settled`: over and, where nobody had answered yet, answered. `accepted`: the network works on it, answered 202. */
type SettlementState = 'settled' | 'accepted';

/** The activities of one kind of operation; each takes the claim's id. */
export interface OperationSteps<Outcome extends string> {
  open(claimId: string): Promise<Opening>;
  /** Asks the network and acts on its answer; fails where there is none. */
  settleAtOnce(claimId: string): Promise<SettlementState>;
  settleLater(claimId: string): Promise<SettlementState>;
  /** How long the network may still take; 0, or from an earlier version nothing, where that time is over. */
  flagOverdue(claimId: string): Promise<number | undefined>;
  /** From an earlier version nothing, and then it is over. */
  settleByHand(claimId: string, decision: Decision<Outcome>): Promise<Verdict | undefined>;
  /** What somebody decides, and what it can be. */
  resolve: SignalDefinition<[Decision<Outcome>]>;
  outcomes: readonly Outcome[];
  /** What the Temporal UI says while it waits for an operator. */
  overdueDetails: string;
}

/**
 * Holds an operation's money, asks the network, and posts on its yes or releases on its definite no. Where the network
 * stays silent past the deadline an operator decides. A request to cancel is not followed, since money is only ever
 * released on a definite no.
 */
export async function runNetworkOperation<Outcome extends string>(
  steps: OperationSteps<Outcome>,
  { claimId, deadlineMs }: NetworkOperationInput,
): Promise<void> {
  let deadline = Date.now() + deadlineMs;
  // A promise, not a condition: each condition that gets unblocked costs the worker another turn.
  const answered = Promise.withResolvers<void>();
  let overdue = false;
  let hints = 0;
  let decision: Decision<Outcome> | undefined;

  // API processes of the release before eager starts wait for it.
  setHandler(firstAnswer, () => answered.promise);

  // The scope that ignores cancellation costs 2 ms, which most operations can do without: a cancelled step is repeated.
  const opening = await steps.open(claimId).catch(unlessCancelled);
  if (opening !== 'answered') {
    listen();
    const first = opening === 'held' ? await steps.settleAtOnce(claimId).catch(noAnswer) : undefined;
    if (first !== 'settled') await CancellationScope.nonCancellable(() => goOn(first));
    waitNoLonger();
  }
  answered.resolve();
  if (!allHandlersFinished()) {
    await CancellationScope.nonCancellable(() => condition(allHandlersFinished));
  }

  // Signals wait for their handlers; most operations are over without any, and each handler costs.
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
      if (Date.now() < deadline && !patched('decisions-are-checked')) return;
      decision = { outcome, ...(networkCardId !== undefined && { networkCardId }) };
    });
  }

  /** @param first what came of asking the network at once; undefined where the money is not known to be held */
  async function goOn(first: SettlementState | 'unclear' | undefined): Promise<void> {
    let heard = 0;
    let state = first;
    if (state === undefined) {
      if ((await steps.open(claimId)) === 'answered') return;
      heard = hints;
      state = await steps.settleAtOnce(claimId).catch(noAnswer);
    }
    for (let pollMs = FIRST_POLL_MS; state !== 'settled'; pollMs = nextPollMs(pollMs)) {
      if (state === 'accepted') answered.resolve();
      if (!overdue && Date.now() >= deadline) await waitForOperator();
      await condition(
        () => hints > heard || decision !== undefined,
        overdue ? pollMs : Math.min(pollMs, deadline - Date.now()),
      );
      if (decision !== undefined && (await carriedOut(decision))) return;
      heard = hints;
      state = await steps.settleLater(claimId).catch(noAnswer);
    }
  }

  function nextPollMs(pollMs: number): number {
    return Math.min(pollMs * 2, overdue ? LONGEST_OVERDUE_POLL_MS : LONGEST_POLL_MS);
  }

  async function carriedOut(decided: Decision<Outcome>): Promise<boolean> {
    decision = undefined;
    const verdict = await steps.settleByHand(claimId, decided);
    if (verdict === undefined || verdict.settled) return true;
    setCurrentDetails(`${overdue ? `${steps.overdueDetails} ` : ''}${NOT_CARRIED_OUT[verdict.because]}`);
    return false;
  }

  async function waitForOperator(): Promise<void> {
    const remainingMs = await steps.flagOverdue(claimId);
    if (remainingMs !== undefined && remainingMs > 0) {
      deadline = Date.now() + remainingMs;
      return;
    }
    overdue = true;
    upsertSearchAttributes([{ key: needsAttentionAttribute, value: true }]);
    setCurrentDetails(steps.overdueDetails);
  }

  function waitNoLonger(): void {
    setCurrentDetails('');
    if (overdue) upsertSearchAttributes([{ key: needsAttentionAttribute, value: false }]);
  }
}

const NOT_CARRIED_OUT: Record<WhyNot, string> = {
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

function unlessCancelled(error: unknown): undefined {
  if (!isCancellation(error)) throw error;
}

/** The activity's own retries are used up: still no answer, and so not a no. */
function noAnswer(): 'unclear' {
  return 'unclear';
}
