import {
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
const BEGIN_LOCALLY: LocalActivityOptions = {
  startToCloseTimeout: '5s',
  retry: { initialInterval: '50ms', maximumInterval: '500ms', maximumAttempts: 11 },
};

const BEGIN = 'wait for its turn among the changes of the card';
const REQUEST = 'ask the network for the change';

const begin = {
  locally: proxyLocalActivities<CardStatusActivities>(summarized(BEGIN_LOCALLY, BEGIN)).beginStatusChange,
  // One attempt; and attempts without end, which are one event in the history, however many there are.
  once: proxyActivities<CardStatusActivities>(summarized(NETWORK_CALL, BEGIN)).beginStatusChange,
  forEver: proxyActivities<CardStatusActivities>(summarized(RETRIED_FOR_EVER, BEGIN)).beginStatusChange,
};
const request = {
  locally: proxyLocalActivities<CardStatusActivities>(summarized(LOCAL_NETWORK_CALL, REQUEST))
    .requestStatusChange,
  once: proxyActivities<CardStatusActivities>(summarized(NETWORK_CALL, REQUEST)).requestStatusChange,
  forEver: proxyActivities<CardStatusActivities>(summarized(RETRIED_FOR_EVER, REQUEST)).requestStatusChange,
};

/**
 * Freezes, unfreezes or blocks one card. Changes of one card happen one after the other: the network is asked for the
 * next one when it has answered the one before. It is asked for ever, under the same token, since we can't give up a
 * change that it may have made. For the same reason the workflow ignores requests to cancel it.
 */
export async function changeCardStatus({ claimId }: ChangeCardStatusInput): Promise<StatusChangeEnd> {
  setCurrentDetails('Asking the card network, unless another change of the card is under way.');
  // A scope that ignores cancellation takes 2 ms, so a refusal does without it.
  const beginning = await begin.locally(claimId).catch(notYet);
  if (typeof beginning === 'object') return shownEnd(beginning);
  return CancellationScope.nonCancellable(async () => {
    const begun = beginning ?? (await persist(begin, claimId, WAITS_FOR_TURN));
    if (typeof begun === 'object') return shownEnd(begun);
    setCurrentDetails('Asking the card network.');
    return shownEnd(
      (await request.locally(claimId).catch(notYet)) ?? (await persist(request, claimId, WAITS_FOR_NETWORK)),
    );
  });
}

function shownEnd(end: StatusChangeEnd): StatusChangeEnd {
  setCurrentDetails(`Over: ${end.outcome.replaceAll('_', ' ')}.`);
  if (end.outcome === 'refused_by_network')
    upsertSearchAttributes([{ key: outcomeAttribute, value: 'failed' }]);
  return end;
}

/** The attempts are used up, or a request to cancel ended them: ask again. */
function notYet(): undefined {}

/** Why a step takes long. */
interface Waiting {
  now: string;
  /** What a person should do once it has taken too long. */
  tooLong: string;
}

/**
 * Asks until there is an answer. If that takes longer than {@link STATUS_CHANGE_PATIENCE_MS}, the workflow can be found
 * by NeedsAttention, and shows what to do.
 */
async function persist<T>(
  ask: { once(claimId: string): Promise<T>; forEver(claimId: string): Promise<T> },
  claimId: string,
  waiting: Waiting,
): Promise<T> {
  const patientUntil = Date.now() + STATUS_CHANGE_PATIENCE_MS;
  let pauseMs = FIRST_PAUSE_MS;
  for (let asked = 1; Date.now() < patientUntil; asked += 1) {
    setCurrentDetails(
      `${waiting.now} Tried ${asked === 1 ? 'once' : `${asked} times`}, next at ${iso(Date.now() + pauseMs)}. It needs a ` +
        `look if that lasts until ${iso(patientUntil)}.`,
    );
    await sleep(pauseMs, { summary: 'until the next try' });
    const answer = await ask.once(claimId).catch(notYet);
    if (answer !== undefined) return answer;
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
  }
  upsertSearchAttributes([{ key: needsAttentionAttribute, value: true }]);
  setCurrentDetails(`**Needs a look.** ${waiting.tooLong} ${NO_DECISION}`);
  const answer = await ask.forEver(claimId);
  upsertSearchAttributes([{ key: needsAttentionAttribute, value: false }]);
  return answer;
}

const iso = (timeMs: number): string => new Date(timeMs).toISOString();

const WAITS_FOR_TURN: Waiting = {
  now: 'Another change of the same card is under way at the card network.',
  tooLong:
    "Waits for another change of the same card, which waits for the card network: look at that one's workflow.",
};
const WAITS_FOR_NETWORK: Waiting = {
  now: 'The card network has not confirmed the change.',
  tooLong:
    'The card network has not confirmed the change. It is asked again every minute: check that it can be reached.',
};
const NO_DECISION =
  'There is nothing to decide, and no signal to send. Terminating this workflow does not cancel the change: it is ' +
  'started again within a minute.';
