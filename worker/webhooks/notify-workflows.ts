import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import {
  markDeliveryNotified,
  queueOverdueRetries,
  takeUnnotifiedDeliveries,
  type UnnotifiedDelivery,
} from '../../commands/webhooks/retries.ts';
import type { Orm } from '../../db/orm.ts';
import type { Tenant } from '../../domain/mode.ts';
import { repeat } from '../../process/repeat.ts';
import { notifyDelivery } from '../../temporal/deliver-webhook.ts';
import { notifyInTurns } from '../notify-in-turns.ts';

/** An account's full allowance is available again after this time. */
const IDLE_MS = 200;
const NOTIFY_TIMEOUT_MS = 5_000;
const OVERDUE_INTERVAL_MS = 1_000;

/**
 * Keeps failed events and their workflows in sync: it tells workflows what the relay has recorded, which starts missing ones,
 * and makes events pending that are due even though no workflow has said so.
 */
export function startNotifyingWorkflows(dependencies: {
  orm: Orm;
  client: Client;
  logger: Logger;
  taskQueue: string;
  /** Called when the relay has something to send. */
  wake(): void;
}): { stop(): Promise<void> } {
  const { orm, client, logger, taskQueue, wake } = dependencies;

  async function notify(delivery: UnnotifiedDelivery): Promise<void> {
    const { event_id: eventId, partner_id: partnerId, type, mode, status } = delivery;
    await client.withDeadline(Date.now() + NOTIFY_TIMEOUT_MS, () =>
      notifyDelivery(
        client,
        { eventId, type, partnerId, mode, taskQueue },
        {
          status,
          attemptCount: delivery.attempt_count,
          nextAttemptInMs: Math.max(1, Math.round(delivery.next_attempt_in_ms)),
          error: delivery.error,
        },
      ),
    );
    // If the process dies here, the workflow is notified again.
    await markDeliveryNotified(orm, delivery);
  }

  const notifying = notifyInTurns({
    what: 'events',
    idleMs: IDLE_MS,
    roundPauseMs: 0,
    logger,
    notify,
    take: (after: Tenant | null) => takeUnnotifiedDeliveries(orm, after),
  });
  const overdue = repeat('the sweep of overdue events', OVERDUE_INTERVAL_MS, logger, async () => {
    const count = await queueOverdueRetries(orm);
    if (count === 0) return;
    logger.info({ events: count }, 'resending overdue events that no workflow had reported as due');
    wake();
  });

  return {
    stop: async () => {
      await Promise.all([notifying.stop(), overdue.stop()]);
    },
  };
}
