import {
  allHandlersFinished,
  CancellationScope,
  condition,
  type LocalActivityOptions,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
  sleep,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import type { CardStatusActivities } from '../activities/card-status.ts';
import { AT_ONCE_WITH_NETWORK, LATER, LATER_WITH_NETWORK } from './activity-options.ts';
import { type ChangeCardStatusInput, firstAnswer, STATUS_CHANGE_PATIENCE_MS } from './messages.ts';
import { needsAttentionAttribute } from './search-attributes.ts';

const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

/**
 * Its turn comes soon where the change before it goes the usual way: 4 s of pauses that are the worker's own, no timers.
 * Counted, since a scheduleToCloseTimeout that runs out between two attempts ends nothing.
 */
const OPEN_AT_ONCE: LocalActivityOptions = {
  startToCloseTimeout: '5s',
  retry: { initialInterval: '50ms', maximumInterval: '500ms', maximumAttempts: 11 },
};

const atOnce = {
  open: proxyLocalActivities<CardStatusActivities>(OPEN_AT_ONCE).openStatusChange,
  apply: proxyLocalActivities<CardStatusActivities>(AT_ONCE_WITH_NETWORK).applyStatusChange,
};
/** One attempt of each; and attempts without end, which are one event in the history, however many they become. */
const once = proxyActivities<CardStatusActivities>(LATER_WITH_NETWORK);
const forEver = proxyActivities<CardStatusActivities>(LATER);

/**
 * Freezes, unfreezes or blocks one card. Changes of one card go one after the other: the next is asked for when the
 * network has answered the one before. It is asked for ever, under the same token, since a change that may have been
 * made there can't be given up; so a request to cancel is not followed either.
 */
export async function changeCardStatus({ claimId }: ChangeCardStatusInput): Promise<void> {
  const answered = Promise.withResolvers<void>();
  // API processes of the release before eager starts wait for it.
  setHandler(firstAnswer, () => answered.promise);

  // The scope that ignores cancellation costs 2 ms, which a refusal can do without.
  const opening = await atOnce.open(claimId).catch(notYet);
  if (opening === 'answered') return finish();
  await CancellationScope.nonCancellable(async () => {
    if ((opening ?? (await openLater())) === 'opened') {
      (await atOnce.apply(claimId).catch(notYet)) ?? (await applyLater());
    }
    await finish();
  });

  function openLater(): Promise<'opened' | 'answered'> {
    return persist(
      () => once.openStatusChange(claimId),
      () => forEver.openStatusChange(claimId),
      WAITS_FOR_TURN,
    );
  }

  function applyLater(): Promise<'answered'> {
    return persist(
      () => once.applyStatusChange(claimId),
      () => forEver.applyStatusChange(claimId),
      WAITS_FOR_NETWORK,
    );
  }

  async function finish(): Promise<void> {
    answered.resolve();
    if (!allHandlersFinished()) await condition(allHandlersFinished);
  }
}

/** The attempts are used up, or a request to cancel ended them: it is asked again. */
function notYet(): undefined {}

/**
 * Asks until there is an answer. What takes longer than {@link STATUS_CHANGE_PATIENCE_MS} can be found by NeedsAttention,
 * with `details`.
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
