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
import type { CardStatusActivities, StatusChangeEnd } from '../cards/status-activities.ts';
import { needsAttentionAttribute, outcomeAttribute } from '../platform/temporal/search-attributes.ts';
import { LOCAL_NETWORK_CALL, NETWORK_CALL, RETRIED_FOR_EVER, summarized } from './activity-options.ts';
import { type ChangeCardStatusInput, STATUS_CHANGE_PATIENCE_MS } from './messages.ts';

const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 60_000;

/**
 * A change usually gets its turn soon, so the first attempts are local: the worker pauses between them, for 4
 * s in all, without timers. The number of attempts is limited, because a scheduleToCloseTimeout that expires
 * between two attempts ends nothing.
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
 * Freezes, unfreezes or blocks one card. Changes of one card run one at a time: the network is asked for the
 * next one after it has answered the one before. It is asked with the same token until it answers, because it
 * may already have made the change. For the same reason, the workflow ignores cancellation.
 */
export async function changeCardStatus({ claimId }: ChangeCardStatusInput): Promise<StatusChangeEnd> {
  setCurrentDetails('Asking the card network, or waiting for another change of the card.');
  // A non-cancellable scope takes 2 ms, so this runs outside of one: a change that ends at once needs none.
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

/** What to tell people about a change that takes long. */
interface Waiting {
  now: string;
  /** What a person should do once it has taken too long. */
  tooLong: string;
}

/** The attempts are used up, or were cancelled. The caller asks again. */
function whatItWaitsFor(error: unknown): Waiting {
  const cause = error instanceof ActivityFailure ? error.cause : undefined;
  return cause instanceof ApplicationFailure && cause.type === 'CardBusy'
    ? WAITS_FOR_TURN
    : WAITS_FOR_NETWORK;
}

/**
 * Asks until there is an answer. If that takes longer than {@link STATUS_CHANGE_PATIENCE_MS}, the workflow
 * sets NeedsAttention and shows what to do.
 */
async function persist(claimId: string, first: Waiting): Promise<StatusChangeEnd> {
  let waiting = first;
  let pauseMs = FIRST_PAUSE_MS;
  // A timer decides, as the history records it. After a local activity, the clock can show another time when
  // that is replayed.
  let isPatient = true;
  const patientUntil = Date.now() + STATUS_CHANGE_PATIENCE_MS;
  void sleep(STATUS_CHANGE_PATIENCE_MS, { summary: 'until somebody should look at it' }).then(() => {
    isPatient = false;
  });
  for (let asked = 1; isPatient; asked += 1) {
    setCurrentDetails(
      `${waiting.now} Tried ${asked === 1 ? 'once' : `${asked} times`}, next at ${iso(Date.now() + pauseMs)}. Somebody ` +
        `should look at it if this lasts until ${iso(patientUntil)}.`,
    );
    await sleep(pauseMs, { summary: 'until the next try' });
    // If the network is asked for the first time, the pauses start over.
    const nextMs = waiting === WAITS_FOR_NETWORK ? Math.min(pauseMs * 2, MAX_PAUSE_MS) : FIRST_PAUSE_MS;
    const answer = await requestOnce(claimId, nextMs).catch(whatItWaitsFor);
    if ('outcome' in answer) return answer;
    // Once it is this change's turn, the card's other changes wait for it, so the pauses start over.
    pauseMs = answer === waiting ? Math.min(pauseMs * 2, MAX_PAUSE_MS) : FIRST_PAUSE_MS;
    waiting = answer;
  }
  upsertSearchAttributes([{ key: needsAttentionAttribute, value: true }]);
  setCurrentDetails(`**Needs attention.** ${waiting.tooLong} ${NO_DECISION}`);
  const answer = await requestForEver(claimId, MAX_PAUSE_MS);
  upsertSearchAttributes([{ key: needsAttentionAttribute, value: false }]);
  return answer;
}

const iso = (timeMs: number): string => new Date(timeMs).toISOString();

const WAITS_FOR_TURN: Waiting = {
  now: 'Another change of the same card comes first.',
  tooLong:
    "Waiting for another change of the same card, which is waiting for the card network: look at that change's workflow. If " +
    'it has ended, the network has not confirmed this change either.',
};
const WAITS_FOR_NETWORK: Waiting = {
  now: 'The card network has not confirmed the change.',
  tooLong:
    'The card network has not confirmed the change. We ask it again every minute: check that it can be reached.',
};
const NO_DECISION =
  'There is nothing to decide, and no signal to send. Terminating this workflow does not cancel the change: the workflow ' +
  'is started again within a minute.';
