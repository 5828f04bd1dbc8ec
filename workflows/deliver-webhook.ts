import {
  condition,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import type { WebhookDeliveryActivities } from '../activities/webhook-delivery.ts';
import { type DeliverWebhookInput, requeue } from './messages.ts';
import { deliveryStatusAttribute, needsAttentionAttribute } from './search-attributes.ts';

const PARKED_FOR = '30 days';

const { attemptDelivery } = proxyActivities<WebhookDeliveryActivities>({
  startToCloseTimeout: '30s',
  retry: { initialInterval: '1s', maximumInterval: '1m' },
});

/**
 * Sends an event whose first attempt failed, on the schedule of partner-api.md, "Delivery rules": same id, same bytes.
 * Given up, it waits 30 days for somebody to send it again.
 */
export async function deliverWebhook({ eventId, delaysMs, attempted }: DeliverWebhookInput): Promise<void> {
  let requeued = false;
  setHandler(requeue, () => {
    requeued = true;
  });

  for (let number = attempted ? 1 : 0; ; number++) {
    if (number > 0 && !requeued) await condition(() => requeued, delaysMs[number - 1] ?? 0);
    if (requeued) number = 0;
    requeued = false;
    const { outcome, error } = await attemptDelivery(eventId, delaysMs[number] ?? null);
    if (outcome !== 'failed')
      return upsertSearchAttributes([{ key: deliveryStatusAttribute, value: outcome }]);
    if (number < delaysMs.length) continue;

    upsertSearchAttributes([
      { key: deliveryStatusAttribute, value: 'given_up' },
      { key: needsAttentionAttribute, value: true },
    ]);
    setCurrentDetails(
      `Given up after ${number + 1} attempts, the last one: ${error}. To send it again, send the signal \`requeue\` or ` +
        `run \`operator webhook requeue ${eventId}\`.`,
    );
    const isWanted = await condition(() => requeued, PARKED_FOR);
    upsertSearchAttributes([
      { key: deliveryStatusAttribute, value: isWanted ? 'retrying' : 'given_up' },
      { key: needsAttentionAttribute, value: false },
    ]);
    if (!isWanted) return;
    setCurrentDetails('');
  }
}
