import {
  allHandlersFinished,
  CancellationScope,
  condition,
  isCancellation,
  type SignalDefinition,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
} from '@temporalio/workflow';
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
  flagOverdue(claimId: string): Promise<void>;
  settleByHand(claimId: string, outcome: Outcome): Promise<void>;
  /** An operator's decision, and what it can be. */
  resolve: SignalDefinition<[{ outcome: Outcome }]>;
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
  const deadline = Date.now() + deadlineMs;
  // A promise, not a condition: each condition that gets unblocked costs the worker another turn.
  const answered = Promise.withResolvers<void>();
  let overdue = false;
  let hints = 0;
  let decision: Outcome | undefined;

  setHandler(firstAnswer, () => answered.promise);

  // The scope that ignores cancellation costs 2 ms, which most operations can do without: a cancelled step is repeated.
  const opening = await steps.open(claimId).catch(unlessCancelled);
  if (opening === 'answered') {
    answered.resolve();
    await condition(allHandlersFinished);
    return;
  }
  await CancellationScope.nonCancellable(async () => {
    if ((opening ?? (await steps.open(claimId))) === 'held') {
      listen();
      await settle();
    }
    answered.resolve();
    if (overdue) waitNoLonger();
    await condition(allHandlersFinished);
  });

  // Signals wait for their handlers; most operations are over without any, and each handler costs.
  function listen(): void {
    setHandler(networkResult, () => {
      hints += 1;
    });
    setHandler(steps.resolve, (decided: { outcome?: Outcome } | null | undefined) => {
      // A signal can carry anything: what is not one of the outcomes decides nothing.
      const outcome = steps.outcomes.find((known) => known === decided?.outcome);
      if (Date.now() >= deadline && outcome !== undefined) decision = outcome;
    });
  }

  async function settle(): Promise<void> {
    let heard = hints;
    let state = await steps.settleAtOnce(claimId).catch(noAnswer);
    for (let pollMs = FIRST_POLL_MS; state !== 'settled'; pollMs = nextPollMs(pollMs)) {
      if (state === 'accepted') answered.resolve();
      const remainingMs = deadline - Date.now();
      if (!overdue && remainingMs <= 0) await waitForOperator();
      await condition(
        () => hints > heard || decision !== undefined,
        overdue ? pollMs : Math.min(pollMs, remainingMs),
      );
      if (decision !== undefined) {
        await steps.settleByHand(claimId, decision);
        return;
      }
      heard = hints;
      state = await steps.settleLater(claimId).catch(noAnswer);
    }
  }

  function nextPollMs(pollMs: number): number {
    return Math.min(pollMs * 2, overdue ? LONGEST_OVERDUE_POLL_MS : LONGEST_POLL_MS);
  }

  async function waitForOperator(): Promise<void> {
    await steps.flagOverdue(claimId);
    overdue = true;
    upsertSearchAttributes([{ key: needsAttentionAttribute, value: true }]);
    setCurrentDetails(steps.overdueDetails);
  }

  function waitNoLonger(): void {
    upsertSearchAttributes([{ key: needsAttentionAttribute, value: false }]);
    setCurrentDetails('');
  }
}

function unlessCancelled(error: unknown): undefined {
  if (!isCancellation(error)) throw error;
}

/** The activity's own retries are used up: still no answer, and so not a no. */
function noAnswer(): 'unclear' {
  return 'unclear';
}
