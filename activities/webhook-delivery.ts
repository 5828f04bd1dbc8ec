import type { WebhookClient } from '../adapters/webhooks/webhook-client.ts';
import type { CommandContext } from '../commands/command-context.ts';
import { disableEndpoint } from '../commands/disable-endpoint.ts';
import { parkDeliveries } from '../commands/park-deliveries.ts';
import { readDelivery } from '../commands/read-delivery.ts';
import { recordAttempts } from '../commands/record-attempts.ts';
import type { Orm } from '../db/orm.ts';
import { type AttemptMade, attemptWebhook, type Delivery } from './attempt-webhook.ts';

export const GONE = 410;

export interface DeliveryProgress {
  /** `failed`: to be attempted again. `parked`: the endpoint is gone or disabled. */
  outcome: 'delivered' | 'failed' | 'parked';
  /** A short code where it failed. */
  error: string | null;
}

export interface WebhookDeliveryActivities {
  /** Sends an event once and records it. @param nextAttemptMs null: there is no next one, it is given up. */
  attemptDelivery(eventId: string, nextAttemptMs: number | null): Promise<DeliveryProgress>;
}

export interface WebhookDependencies extends CommandContext {
  webhooks: WebhookClient;
}

/** The effects that `deliverWebhook` asks for. Run again, an event may arrive again: receivers know it by its id. */
export function createWebhookDeliveryActivities(
  dependencies: WebhookDependencies,
): WebhookDeliveryActivities {
  const { orm } = dependencies;
  return {
    async attemptDelivery(eventId, nextAttemptMs) {
      const delivery = await readDelivery(orm, eventId);
      // Pruned or delivered: there is nothing left to send.
      if (delivery === undefined || delivery.status === 'delivered')
        return { outcome: 'delivered', error: null };
      const { url } = delivery;
      if (url === null || delivery.endpoint_status !== 'enabled') {
        await parkDeliveries(orm, [eventId]);
        return { outcome: 'parked', error: null };
      }
      const attempt = await attemptWebhook(dependencies, { ...delivery, url });
      if (attempt.httpStatus === GONE) {
        await setAsideGone(orm, { ...delivery, url }, attempt);
        return { outcome: 'parked', error: attempt.error };
      }
      const outcome = attempt.error === null ? 'delivered' : 'failed';
      const status = outcome === 'delivered' ? outcome : nextAttemptMs === null ? 'given_up' : 'retrying';
      const next = outcome === 'failed' ? nextAttemptMs : null;
      await recordAttempts(orm.em.fork(), [{ ...attempt, status, nextAttemptMs: next }], {
        mayBeForgotten: false,
      });
      return { outcome, error: attempt.error };
    },
  };
}

/** The receiver wants nothing more: its endpoint is disabled, and this event waits with the others. */
export async function setAsideGone(orm: Orm, delivery: Delivery, attempt: AttemptMade): Promise<void> {
  const { partner_id: partnerId, mode, url } = delivery;
  await disableEndpoint(orm, { partnerId, mode }, { url, reason: 'it answered 410 Gone' });
  const pending = { ...attempt, status: 'pending', nextAttemptMs: null } as const;
  await recordAttempts(orm.em.fork(), [pending], { mayBeForgotten: false });
  await parkDeliveries(orm, [delivery.event_id]);
}
