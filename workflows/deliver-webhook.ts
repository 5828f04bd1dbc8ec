import {
  condition,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import type { WebhookActivities } from '../activities/webhooks.ts';
import { LOCAL_STEP } from './activity-options.ts';
import { type DeliverWebhookInput, type DeliveryProgress, progress, requeue } from './messages.ts';
import { deliveryStatusAttribute, needsAttentionAttribute } from './search-attributes.ts';

const GIVEN_UP_FOR = '30 days';
/** An event may wait longer than this for a slot at its endpoint; the workflow then asks for its status. */
const WITH_RELAY_FOR = '1 hour';

const { queueRetry, requeueEvent } = proxyLocalActivities<WebhookActivities>(LOCAL_STEP);

/**
 * Waits between the attempts of an event, on the schedule of partner-api.md, "Delivery rules". The relay makes the
 * attempts, from the event's row, and signals what became of each. When the event is given up, the workflow waits 30 days
 * for somebody to send it again.
 */
export async function deliverWebhook({ eventId }: DeliverWebhookInput): Promise<void> {
  const show = createDisplay(eventId);
  let latest: DeliveryProgress | undefined;
  let attemptCount = 0;
  let isRequeued = false;
  setHandler(progress, (told) => {
    if (told.attemptCount < attemptCount) return;
    attemptCount = told.attemptCount;
    latest = told;
  });
  setHandler(requeue, () => {
    isRequeued = true;
  });
  const isSignalled = () => isRequeued || latest !== undefined;

  // Undefined while the event is with the relay.
  for (let known: DeliveryProgress | undefined; ; ) {
    if (known !== undefined) show(known.status, known);
    // If a signal arrives before the server has recorded the end, the workflow handles it and continues.
    if (known?.status === 'delivered' || known?.status === 'parked') return;
    if (!isSignalled()) {
      if (known === undefined) await condition(isSignalled, WITH_RELAY_FOR);
      else if (known.status === 'retrying') await condition(isSignalled, known.nextAttemptInMs);
      else if (!(await condition(isSignalled, GIVEN_UP_FOR))) return show('ended');
    }
    if (latest !== undefined) {
      known = latest;
      latest = undefined;
      continue;
    }
    let exists: boolean;
    if (isRequeued) {
      show('retrying');
      isRequeued = false;
      exists = await requeueEvent(eventId);
    } else exists = await queueRetry(eventId, attemptCount);
    if (!exists) return;
    known = undefined;
  }
}

/** Shows operators the status of the event. `ended`: it was given up, and nobody has sent it again. */
function createDisplay(eventId: string) {
  let shown: DeliveryProgress['status'] | 'ended' = 'retrying';
  return (status: typeof shown, last?: DeliveryProgress): void => {
    if (status === shown) return;
    const needsAttention = status === 'given_up';
    upsertSearchAttributes([
      { key: deliveryStatusAttribute, value: status === 'ended' ? 'given_up' : status },
      ...(needsAttention || shown === 'given_up'
        ? [{ key: needsAttentionAttribute, value: needsAttention }]
        : []),
    ]);
    if (status === 'retrying') setCurrentDetails('');
    if (needsAttention && last !== undefined)
      setCurrentDetails(
        `Given up after ${last.attemptCount} attempts; the last error was ${last.error}. To send it again, send the signal ` +
          `\`requeue\` or run \`operator webhook requeue ${eventId}\`.`,
      );
    shown = status;
  };
}
