import { handOverRetry, requeueByWorkflow } from '../commands/webhooks/requeue-events.ts';
import type { Orm } from '../db/orm.ts';

export interface WebhookDeliveryActivities {
  /**
   * Has the relay make the attempt that is due.
   * @param heardOf how many attempts the workflow has heard of; null: it is of a release that did not count
   * @returns whether there still is such an event
   */
  handOverRetry(eventId: string, heardOf: number | null): Promise<boolean>;
  /** Has the relay send an event again, at once and with the whole schedule. @returns whether there still is such an event */
  requeueEvent(eventId: string): Promise<boolean>;
  /** What workflows had for it before the relay made every attempt; one of those may still be scheduled. */
  attemptDelivery(eventId: string, nextAttemptMs: number | null): Promise<AttemptBefore>;
}

/** `with_relay`: what comes of it is told by a signal. */
export interface AttemptBefore {
  outcome: 'delivered' | 'failed' | 'parked' | 'with_relay';
  error: string | null;
}

/** The effects that `deliverWebhook` asks for. @param wake tells the relay of this process that there is something to send */
export function createWebhookDeliveryActivities(orm: Orm, wake: () => void): WebhookDeliveryActivities {
  async function handOver(eventId: string, heardOf: number | null): Promise<boolean> {
    const exists = await handOverRetry(orm, eventId, heardOf);
    wake();
    return exists;
  }
  return {
    handOverRetry: handOver,
    async requeueEvent(eventId) {
      const exists = await requeueByWorkflow(orm, eventId);
      wake();
      return exists;
    },
    async attemptDelivery(eventId) {
      const exists = await handOver(eventId, null);
      return { outcome: exists ? 'with_relay' : 'delivered', error: null };
    },
  };
}
