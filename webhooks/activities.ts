import type { Orm } from '../platform/db/orm.ts';
import { queueRetry } from './retries.ts';
import { requeueForWorkflow } from './send-on-request.ts';

export interface WebhookActivities {
  /**
   * Makes the event's next attempt due, so that the relay makes it.
   * @param attemptCount how many attempts the workflow knows about
   * @returns whether the delivery still exists
   */
  queueRetry(eventId: string, attemptCount: number, endpointId: string): Promise<boolean>;
  /**
   * Has the relay send an event again at once, with a new retry schedule. @returns whether the delivery still
   * exists
   */
  requeueEvent(eventId: string, endpointId: string): Promise<boolean>;
}

/**
 * The activities of `deliverWebhook`.
 * @param wake tells this process's relay that there is something to send
 * @param signalSender who sent the workflow's newest signal of this name; null if Temporal doesn't say
 */
export function createWebhookActivities(
  orm: Orm,
  wake: () => void,
  signalSender: (signal: string, isThis: () => boolean) => Promise<string | null>,
): WebhookActivities {
  return {
    async queueRetry(eventId, attemptCount, endpointId) {
      const exists = await queueRetry(orm, { eventId, endpointId }, attemptCount);
      wake();
      return exists;
    },
    async requeueEvent(eventId, endpointId) {
      const sentBy = await signalSender('requeue', () => true);
      const exists = await requeueForWorkflow(orm, { eventId, endpointId }, sentBy);
      wake();
      return exists;
    },
  };
}
