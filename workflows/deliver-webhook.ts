import {
  condition,
  patched,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import type { WebhookDeliveryActivities } from '../activities/webhook-delivery.ts';
import { AT_ONCE } from './activity-options.ts';
import { type DeliverWebhookInput, type DeliveryProgress, progress, requeue } from './messages.ts';
import { deliveryStatusAttribute, needsAttentionAttribute } from './search-attributes.ts';

const PARKED_FOR = '30 days';
/** An event may wait longer than that for its turn at an endpoint; the workflow then asks how it stands. */
const WITH_RELAY_FOR = '1 hour';

const { handOverRetry, requeueEvent } = proxyLocalActivities<WebhookDeliveryActivities>(AT_ONCE);
const { attemptDelivery } = proxyActivities<WebhookDeliveryActivities>({
  startToCloseTimeout: '30s',
  retry: { initialInterval: '1s', maximumInterval: '1m' },
});

/**
 * Keeps the time between the attempts of an event, on the schedule of partner-api.md, "Delivery rules". The relay makes
 * them, from the event's row, and tells what came of each. Given up, it waits 30 days for somebody to send it again.
 */
export async function deliverWebhook(input: DeliverWebhookInput): Promise<void> {
  const { eventId } = input;
  const show = createDisplay(eventId);
  const askOf = input.delaysMs === undefined ? asksTheRelay(eventId) : asksAsBefore(input);
  let latest: DeliveryProgress | undefined;
  let heardOf: number | null = null;
  let requeued = false;
  setHandler(progress, (told) => {
    if (heardOf !== null && told.attemptCount < heardOf) return;
    heardOf = told.attemptCount;
    latest = told;
  });
  setHandler(requeue, () => {
    requeued = true;
  });
  const isHeard = () => requeued || latest !== undefined;

  // Undefined while the event is with the relay.
  for (let known = firstOf(input); ; ) {
    if (known !== undefined) show(known.status, known);
    // What is signalled before the server has the end of it takes the end back, and is heard first.
    if (known?.status === 'delivered' || known?.status === 'parked') return;
    if (!isHeard()) {
      if (known === undefined) await condition(isHeard, WITH_RELAY_FOR);
      else if (known.status === 'retrying') await condition(isHeard, known.nextAttemptInMs);
      else if (!(await condition(isHeard, PARKED_FOR))) return show('ended');
    }
    if (latest !== undefined) {
      known = latest;
      latest = undefined;
      continue;
    }
    if (requeued) show('retrying');
    const request = { requeued, heardOf };
    requeued = false;
    const reply = await askOf(request);
    if (reply === 'pruned') return;
    known = reply;
  }
}

/** Has the next attempt made. @returns what came of it, where the relay does not tell that later */
type Ask = (request: {
  requeued: boolean;
  heardOf: number | null;
}) => Promise<DeliveryProgress | 'pruned' | undefined>;

const asksTheRelay =
  (eventId: string): Ask =>
  async ({ requeued, heardOf }) => {
    const exists = requeued ? await requeueEvent(eventId) : await handOverRetry(eventId, heardOf);
    return exists ? undefined : 'pruned';
  };

/** Of workflows from before the relay made every attempt: their histories have the attempts of an activity. */
function asksAsBefore({ eventId, delaysMs = [], attempted }: DeliverWebhookInput): Ask {
  const ask = asksTheRelay(eventId);
  let made = attempted ? 1 : 0;
  return async (request) => {
    if (request.requeued) made = 0;
    if (patched('the-relay-makes-every-attempt')) return ask(request);
    const nextAttemptInMs = delaysMs[made++];
    const { outcome, error } = await attemptDelivery(eventId, nextAttemptInMs ?? null);
    if (outcome === 'with_relay') return undefined;
    const failed = nextAttemptInMs === undefined ? 'given_up' : 'retrying';
    const status = outcome === 'failed' ? failed : outcome;
    return { status, attemptCount: made, nextAttemptInMs: nextAttemptInMs ?? 0, error };
  };
}

function firstOf({ delaysMs = [], attempted }: DeliverWebhookInput): DeliveryProgress | undefined {
  if (!attempted) return undefined;
  return { status: 'retrying', attemptCount: 0, nextAttemptInMs: delaysMs[0] ?? 0, error: null };
}

/** Shows operators how the event stands. `ended`: it was given up, and nobody has sent it again. */
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
