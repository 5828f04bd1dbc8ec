import {
  CancellationScope,
  type LocalActivityOptions,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  sleep,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import type { CardStatusActivities } from '../activities/card-status.ts';
import { LOCAL_NETWORK_CALL, NETWORK_CALL, RETRIED_FOR_EVER } from './activity-options.ts';
import { type ChangeCardStatusInput, STATUS_CHANGE_PATIENCE_MS } from './messages.ts';
import { needsAttentionAttribute } from './search-attributes.ts';

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

const locally = {
  begin: proxyLocalActivities<CardStatusActivities>(BEGIN_LOCALLY).beginStatusChange,
  request: proxyLocalActivities<CardStatusActivities>(LOCAL_NETWORK_CALL).requestStatusChange,
};
// One attempt of each; and attempts without end, which are one event in the history, however many there are.
const once = proxyActivities<CardStatusActivities>(NETWORK_CALL);
const forEver = proxyActivities<CardStatusActivities>(RETRIED_FOR_EVER);

/**
 * Freezes, unfreezes or blocks one card. Changes of one card happen one after the other: the network is asked for the
 * next one when it has answered the one before. It is asked for ever, under the same token, since we can't give up a
 * change that it may have made. For the same reason the workflow ignores requests to cancel it.
 */
export async function changeCardStatus({ claimId }: ChangeCardStatusInput): Promise<void> {
  // A scope that ignores cancellation takes 2 ms, so a refusal does without it.
  const beginning = await locally.begin(claimId).catch(notYet);
  if (beginning === 'answered') return;
  await CancellationScope.nonCancellable(async () => {
    if ((beginning ?? (await beginLater())) === 'begun') {
      (await locally.request(claimId).catch(notYet)) ?? (await requestLater());
    }
  });

  function beginLater(): Promise<'begun' | 'answered'> {
    return persist(
      () => once.beginStatusChange(claimId),
      () => forEver.beginStatusChange(claimId),
      WAITS_FOR_TURN,
    );
  }

  function requestLater(): Promise<'answered'> {
    return persist(
      () => once.requestStatusChange(claimId),
      () => forEver.requestStatusChange(claimId),
      WAITS_FOR_NETWORK,
    );
  }
}

/** The attempts are used up, or a request to cancel ended them: ask again. */
function notYet(): undefined {}

/**
 * Asks until there is an answer. If that takes longer than {@link STATUS_CHANGE_PATIENCE_MS}, the workflow can be found
 * by NeedsAttention, and shows `details`.
 */
async function persist<T>(ask: () => Promise<T>, askForEver: () => Promise<T>, details: string): Promise<T> {
  const patientUntil = Date.now() + STATUS_CHANGE_PATIENCE_MS;
  for (
    let pauseMs = FIRST_PAUSE_MS;
    Date.now() < patientUntil;
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
  ) {
    await sleep(pauseMs);
    const answer = await ask().catch(notYet);
    if (answer !== undefined) return answer;
  }
  upsertSearchAttributes([{ key: needsAttentionAttribute, value: true }]);
  setCurrentDetails(details);
  const answer = await askForEver();
  upsertSearchAttributes([{ key: needsAttentionAttribute, value: false }]);
  setCurrentDetails('');
  return answer;
}

const WAITS_FOR_TURN =
  "Waits for another change of the same card, which waits for the card network: look at that one's workflow.";
const WAITS_FOR_NETWORK =
  'The card network has not confirmed the change. It is asked again every minute: check that it can be reached. ' +
  'Terminating this workflow does not cancel the change: it is started again within a minute.';
