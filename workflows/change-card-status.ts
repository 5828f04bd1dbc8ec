import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  type LocalActivityOptions,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  sleep,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import type { CardStatusActivities, StatusChangeEnd } from '../activities/card-status.ts';
import { LOCAL_NETWORK_CALL, NETWORK_CALL, RETRIED_FOR_EVER, summarized } from './activity-options.ts';
import { type ChangeCardStatusInput, STATUS_CHANGE_PATIENCE_MS } from './messages.ts';
import { needsAttentionAttribute, outcomeAttribute } from './search-attributes.ts';

const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

/**
 * A change's turn usually comes soon, so the worker itself pauses between attempts, for 4 s in all, without timers. The
 * attempts are counted, since a scheduleToCloseTimeout that runs out between two attempts ends nothing.
 */
const LOCALLY: LocalActivityOptions = {
  ...LOCAL_NETWORK_CALL,
  retry: { initialInterval: '50ms', maximumInterval: '500ms', maximumAttempts: 11 },
};

const SUMMARY = "ask the network for the change, when it is the change's turn";

const { requestStatusChange: requestLocally } = proxyLocalActivities<CardStatusActivities>(
  summarized(LOCALLY, SUMMARY),
);
const { requestStatusChange: requestOnce } = proxyActivities<CardStatusActivities>(
  summarized(NETWORK_CALL, SUMMARY),
);
/** Attempts without end are one event in the history, however many there are. */
const { requestStatusChange: requestForEver } = proxyActivities<CardStatusActivities>(
  summarized(RETRIED_FOR_EVER, SUMMARY),
);

/**
 * Freezes, unfreezes or blocks one card. Changes of one card happen one after the other: the network is asked for the
 * next one when it has answered the one before. It is asked for ever, under the same token, since we can't give up a
 * change that it may have made. For the same reason the workflow ignores requests to cancel it.
 */
export async function changeCardStatus({ claimId }: ChangeCardStatusInput): Promise<StatusChangeEnd> {
  setCurrentDetails('Asking the card network, unless another change of the card is under way.');
  // A scope that ignores cancellation takes 2 ms, so a change that is over at once does without it.
  const first = await requestLocally(claimId).catch(whatItWaitsFor);
  if ('outcome' in first) return shownEnd(first);
  return shownEnd(await CancellationScope.nonCancellable(() => persist(claimId, first)));
}

function shownEnd(end: StatusChangeEnd): StatusChangeEnd {
  setCurrentDetails(`Over: ${end.outcome.replaceAll('_', ' ')}.`);
  if (end.outcome === 'refused_by_network')
    upsertSearchAttributes([{ key: outcomeAttribute, value: 'failed' }]);
  return end;
}

/** Why a change takes long. */
interface Waiting {
  now: string;
  /** What a person should do once it has taken too long. */
  tooLong: string;
}

/** The attempts are used up, or a request to cancel ended them: ask again. */
function whatItWaitsFor(error: unknown): Waiting {
  const cause = error instanceof ActivityFailure ? error.cause : undefined;
  return cause instanceof ApplicationFailure && cause.type === 'CardBusy'
    ? WAITS_FOR_TURN
    : WAITS_FOR_NETWORK;
}

/**
 * Asks until there is an answer. If that takes longer than {@link STATUS_CHANGE_PATIENCE_MS}, the workflow can be found
 * by NeedsAttention, and shows what to do.
 */
async function persist(claimId: string, first: Waiting): Promise<StatusChangeEnd> {
  const patientUntil = Date.now() + STATUS_CHANGE_PATIENCE_MS;
  let waiting = first;
  let pauseMs = FIRST_PAUSE_MS;
  for (let asked = 1; Date.now() < patientUntil; asked += 1) {
    setCurrentDetails(
      `${waiting.now} Tried ${asked === 1 ? 'once' : `${asked} times`}, next at ${iso(Date.now() + pauseMs)}. It needs a ` +
        `look if that lasts until ${iso(patientUntil)}.`,
    );
    await sleep(pauseMs, { summary: 'until the next try' });
    const answer = await requestOnce(claimId).catch(whatItWaitsFor);
    if ('outcome' in answer) return answer;
    // As soon as it is its turn, the card's other changes wait for it, so it asks again soon.
    pauseMs = answer === waiting ? Math.min(pauseMs * 2, LONGEST_PAUSE_MS) : FIRST_PAUSE_MS;
    waiting = answer;
  }
  upsertSearchAttributes([{ key: needsAttentionAttribute, value: true }]);
  setCurrentDetails(`**Needs a look.** ${waiting.tooLong} ${NO_DECISION}`);
  const answer = await requestForEver(claimId);
  upsertSearchAttributes([{ key: needsAttentionAttribute, value: false }]);
  return answer;
}

const iso = (timeMs: number): string => new Date(timeMs).toISOString();

const WAITS_FOR_TURN: Waiting = {
  now: 'Another change of the same card is under way at the card network.',
  tooLong:
    'Waits for another change of the same card, which waits for the card network: look at the workflow of that one. If ' +
    'it is over, the network has not confirmed this change either.',
};
const WAITS_FOR_NETWORK: Waiting = {
  now: 'The card network has not confirmed the change.',
  tooLong:
    'The card network has not confirmed the change. It is asked again every minute: check that it can be reached.',
};
const NO_DECISION =
  'There is nothing to decide, and no signal to send. Terminating this workflow does not cancel the change: it is ' +
  'started again within a minute.';
