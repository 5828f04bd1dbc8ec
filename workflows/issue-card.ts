import {
  allHandlersFinished,
  CancellationScope,
  condition,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import type { CardIssuanceActivities } from '../activities/card-issuance.ts';
import {
  firstAnswer,
  type IssuanceDecision,
  type IssueCardInput,
  networkResult,
  resolveIssuance,
} from './messages.ts';
import { needsAttentionAttribute } from './search-attributes.ts';

const FIRST_POLL_MS = 1_000;
const LONGEST_POLL_MS = 3_600_000;

// Before the first answer: local activities, so that it takes one workflow task.
const atOnce = proxyLocalActivities<CardIssuanceActivities>({
  startToCloseTimeout: '10s',
  retry: { initialInterval: '200ms', maximumInterval: '5s' },
});
const atOnceWithNetwork = proxyLocalActivities<CardIssuanceActivities>({
  startToCloseTimeout: '6s',
  scheduleToCloseTimeout: '7s',
  retry: { initialInterval: '200ms', maximumAttempts: 6 },
});
// The network's two calls take at most 5 s each. What is above that is waited for in vain when a worker dies.
const later = proxyActivities<CardIssuanceActivities>({
  startToCloseTimeout: '15s',
  retry: { initialInterval: '1s', maximumInterval: '1m' },
});
const laterWithNetwork = proxyActivities<CardIssuanceActivities>({
  startToCloseTimeout: '15s',
  retry: { maximumAttempts: 1 },
});

/**
 * Issues one card: holds its money, asks the network, and posts on its yes or releases on its definite no. Where the
 * network stays silent past the deadline an operator decides. A request to cancel is not followed, since money is only
 * ever released on a definite no.
 */
export async function issueCard(input: IssueCardInput): Promise<void> {
  const { claimId } = input;
  const deadline = Date.now() + input.deadlineMs;
  // A promise, not a condition: each condition that gets unblocked costs the worker another turn.
  const answered = Promise.withResolvers<void>();
  let overdue = false;
  let hints = 0;
  let decision: IssuanceDecision | undefined;

  setHandler(firstAnswer, () => answered.promise);
  setHandler(networkResult, () => {
    hints += 1;
  });
  setHandler(resolveIssuance, (decided) => {
    if (Date.now() >= deadline && isDecision(decided)) decision = decided;
  });

  // The scope that ignores cancellation costs 2 ms, which most issuances can do without: a cancelled step is repeated.
  const opening = await atOnce.openIssuance(claimId).catch(unlessCancelled);
  if (opening === 'answered') {
    answered.resolve();
    await condition(allHandlersFinished);
    return;
  }
  await CancellationScope.nonCancellable(async () => {
    if ((opening ?? (await atOnce.openIssuance(claimId))) === 'held') await settle();
    answered.resolve();
    if (overdue) waitNoLonger();
    await condition(allHandlersFinished);
  });

  async function settle(): Promise<void> {
    let heard = hints;
    let state = await atOnceWithNetwork.settleIssuance(claimId).catch(noAnswer);
    for (let pollMs = FIRST_POLL_MS; state !== 'settled'; pollMs = Math.min(pollMs * 2, LONGEST_POLL_MS)) {
      if (state === 'accepted') answered.resolve();
      const remainingMs = deadline - Date.now();
      if (!overdue && remainingMs <= 0) await waitForOperator();
      await condition(
        () => hints > heard || decision !== undefined,
        overdue ? pollMs : Math.min(pollMs, remainingMs),
      );
      if (decision !== undefined) {
        await later.settleIssuanceByHand(claimId, decision.outcome);
        return;
      }
      heard = hints;
      state = await laterWithNetwork.settleIssuance(claimId).catch(noAnswer);
    }
  }

  async function waitForOperator(): Promise<void> {
    await later.flagIssuanceOverdue(claimId);
    overdue = true;
    upsertSearchAttributes([{ key: needsAttentionAttribute, value: true }]);
    setCurrentDetails(
      'Past its deadline: the network has not said whether it issued the card. Find out there, then send the signal ' +
        '`resolve` with {"outcome": "issued"} or {"outcome": "failed"}, or run `operator card resolve`.',
    );
  }

  function waitNoLonger(): void {
    upsertSearchAttributes([{ key: needsAttentionAttribute, value: false }]);
    setCurrentDetails('');
  }
}

/** A signal can carry anything: what is not one of the two words decides nothing. */
function isDecision(decided: Partial<IssuanceDecision> | null | undefined): decided is IssuanceDecision {
  return decided?.outcome === 'issued' || decided?.outcome === 'failed';
}

function unlessCancelled(error: unknown): undefined {
  if (!isCancellation(error)) throw error;
}

/** The activity's own retries are used up: still no answer, and so not a no. */
function noAnswer(): 'unclear' {
  return 'unclear';
}
