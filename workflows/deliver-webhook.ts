import type { SearchAttributeUpdatePair } from '@temporalio/common';
import {
  condition,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { deliveryStatusAttribute, needsAttentionAttribute } from '../platform/temporal/search-attributes.ts';
import type { WebhookActivities } from '../webhooks/activities.ts';
import { LOCAL_STEP, summarized } from './activity-options.ts';
import { type DeliverWebhookInput, type DeliveryProgress, progress, requeue } from './messages.ts';

const GIVEN_UP_FOR = '30 days';
/** An event can wait longer than this for a slot at its endpoint. The workflow then reads its status. */
const WITH_RELAY_FOR = '1 hour';

const { queueRetry } = proxyLocalActivities<WebhookActivities>(
  summarized(LOCAL_STEP, 'hand the event to the relay for its next attempt'),
);
const { requeueEvent } = proxyLocalActivities<WebhookActivities>(
  summarized(LOCAL_STEP, 'hand the event to the relay to be sent again'),
);

/**
 * How a delivery ended. `parked`: its endpoint is disabled or was deleted. `deleted`: the event is older than
 * 30 days.
 */
export interface DeliveryEnd {
  outcome: 'delivered' | 'parked' | 'given_up' | 'deleted';
  attempts: number;
}

/**
 * Waits between the attempts to deliver an event to an endpoint, on the schedule of
 * docs/partners/webhooks.md. The relay makes the attempts, working from the event's row, and signals the
 * result of each. When the event is given up, the workflow waits 30 days for somebody to send it again.
 */
export async function deliverWebhook({ eventId, endpointId }: DeliverWebhookInput): Promise<DeliveryEnd> {
  let latest: DeliveryProgress | undefined;
  let attemptCount = 0;
  let isRequeued = false;
  const onProgress = (reported: DeliveryProgress) => {
    if (reported.attemptCount < attemptCount) return;
    attemptCount = reported.attemptCount;
    latest = reported;
  };
  setHandler(progress, onProgress, {
    description: 'What a worker sends after each attempt. Nothing for you to send.',
  });
  const onRequeue = () => {
    isRequeued = true;
  };
  setHandler(requeue, onRequeue, { description: 'Sends the event again at once. No input.' });
  const isSignalled = () => isRequeued || latest !== undefined;
  const ended = (outcome: DeliveryEnd['outcome']): DeliveryEnd => ({ outcome, attempts: attemptCount });

  // Undefined while the event is with the relay.
  for (let known: DeliveryProgress | undefined; ; ) {
    if (known === undefined) setCurrentDetails(WITH_RELAY);
    else {
      label(known.status);
      setCurrentDetails(describeDelivery(eventId, known));
    }
    // If a signal arrives before the server has recorded the end, the workflow handles it and continues.
    if (known?.status === 'delivered' || known?.status === 'parked') return ended(known.status);
    if (!isSignalled()) {
      if (known === undefined)
        await condition(isSignalled, WITH_RELAY_FOR, { summary: 'until the relay should have reported' });
      else if (known.status === 'retrying')
        await condition(isSignalled, known.nextAttemptInMs, { summary: 'until the next attempt' });
      else if (!(await condition(isSignalled, GIVEN_UP_FOR, { summary: 'until the event is deleted' }))) {
        setCurrentDetails('Given up, and nobody has sent it again for 30 days.');
        upsertSearchAttributes([{ key: needsAttentionAttribute, value: false }]);
        return ended('given_up');
      }
    }
    if (latest !== undefined) {
      known = latest;
      latest = undefined;
      continue;
    }
    let exists: boolean;
    if (isRequeued) {
      label('retrying');
      isRequeued = false;
      exists = await requeueEvent(eventId, endpointId);
    } else exists = await queueRetry(eventId, attemptCount, endpointId);
    if (!exists) return ended('deleted');
    known = undefined;
  }
}

const WITH_RELAY = "A worker's relay has the event, and sends it as soon as its endpoint has a free slot.";

/** The result of the last attempt, and what comes next. */
function describeDelivery(
  eventId: string,
  { status, attemptCount, nextAttemptInMs, error }: DeliveryProgress,
): string {
  const attempts = attemptCount === 1 ? 'one attempt' : `${attemptCount} attempts`;
  switch (status) {
    case 'retrying':
      return (
        `Attempt ${attemptCount} failed: ${error}. The next one is due at ` +
        `${new Date(Date.now() + nextAttemptInMs).toISOString()}; ${toSendNow(eventId)}`
      );
    case 'given_up':
      return `**Given up after ${attempts}**; the last error was ${error}. Once the endpoint works again: ${toSendNow(eventId)}`;
    case 'parked':
      return (
        `Parked after ${attempts}, because its endpoint is disabled; it is sent once the endpoint is enabled. Or the endpoint was deleted: see ` +
        `\`npm run operator -- webhook show ${eventId}\`.`
      );
    case 'delivered':
      return `Delivered after ${attempts}.`;
  }
}

const toSendNow = (eventId: string): string =>
  'to send it now, send the signal `requeue` (no input) or run ' +
  `\`npm run operator -- webhook requeue ${eventId}\`.`;

/** Updates the search attributes if they change. */
function label(status: DeliveryProgress['status']): void {
  const { typedSearchAttributes: shown } = workflowInfo();
  const needsAttention = status === 'given_up';
  const news: SearchAttributeUpdatePair[] = [];
  if (shown.get(deliveryStatusAttribute) !== status)
    news.push({ key: deliveryStatusAttribute, value: status });
  if ((shown.get(needsAttentionAttribute) ?? false) !== needsAttention) {
    news.push({ key: needsAttentionAttribute, value: needsAttention });
  }
  if (news.length > 0) upsertSearchAttributes(news);
}
