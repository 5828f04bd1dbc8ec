import { queueRetry } from '../commands/webhooks/retries.ts';
import { requeueEvents } from '../commands/webhooks/send-on-request.ts';
import type { Orm } from '../db/orm.ts';

export interface WebhookActivities {
  /**
   * Makes the event's next attempt due, so that the relay makes it.
   * @param attemptCount how many attempts the workflow knows about
   * @returns whether the event still exists
   */
  queueRetry(eventId: string, attemptCount: number): Promise<boolean>;
  /** Has the relay send an event again at once, with a new retry schedule. @returns whether the event still exists */
  requeueEvent(eventId: string): Promise<boolean>;
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
    async queueRetry(eventId, attemptCount) {
      const exists = await queueRetry(orm, eventId, attemptCount);
      wake();
      return exists;
    },
    async requeueEvent(eventId) {
      const sentBy = await signalSender('requeue', () => true);
      const found = await requeueEvents(orm, [eventId], { by: 'workflow', sentBy });
      wake();
      return found > 0;
    },
  };
}
