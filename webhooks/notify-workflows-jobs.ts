import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import type { Orm } from '../platform/db/orm.ts';
import { describeError } from '../platform/process/describe-error.ts';
import { repeat } from '../platform/process/repeat.ts';
import { notifyInTurns } from '../worker/notify-in-turns.ts';
import type { QueuedEndpoint } from './deliveries.ts';
import { tellOfFailing } from './endpoint-events.ts';
import { notifyDelivery } from './notify-delivery.ts';
import {
  markDeliveryNotified,
  queueDueRetries,
  takeUnnotifiedDeliveries,
  type UnnotifiedDelivery,
} from './retries.ts';

/** A fallback for what another process has left. */
const IDLE_MS = 5_000;
/** An endpoint's full allowance is available again after 250 ms. */
const ALLOWANCE_MS = 200;
const NOTIFY_TIMEOUT_MS = 5_000;
const DUE_INTERVAL_MS = 1_000;
/** How soon after an attempt it is looked whether its endpoint fails, and how often in any case. */
const FAILING_WITHIN_MS = 1_000;
const FAILING_IDLE_MS = 10_000;

/**
 * Keeps failed events and their workflows in sync: it tells workflows what the relay has recorded, which
 * starts missing ones, and makes events pending that are due even though no workflow has said so. It also
 * tells accounts of endpoints that fail.
 */
export function startNotifyingWorkflows(dependencies: {
  orm: Orm;
  client: Client;
  logger: Logger;
  taskQueue: string;
  /** Called when the relay has something to send. */
  wake(): void;
}): {
  wake(): void;
  /** To be called when an attempt was recorded of which a workflow has to hear. */
  recorded(): void;
  stop(): Promise<void>;
} {
  const { orm, client, logger, taskQueue, wake } = dependencies;

  async function notify(delivery: UnnotifiedDelivery): Promise<void> {
    const { event_id: eventId, endpoint_id: endpointId, partner_id: partnerId, type, mode } = delivery;
    // What a deleted endpoint has given up needs nobody: its workflow ends as if the event were parked.
    const status =
      delivery.is_endpoint_deleted && delivery.status === 'given_up' ? 'parked' : delivery.status;
    await client.withDeadline(Date.now() + NOTIFY_TIMEOUT_MS, () =>
      notifyDelivery(
        client,
        { eventId, endpointId, type, partnerId, mode, taskQueue },
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
    take: async (after: QueuedEndpoint | null) => {
      const taken = await takeUnnotifiedDeliveries(orm, after);
      if (taken.isAllowanceUsed) notifying.wakeWithin(ALLOWANCE_MS);
      return taken;
    },
  });
  const due = repeat('the sweep of due events', DUE_INTERVAL_MS, logger, async () => {
    const queued = await queueDueRetries(orm);
    if (queued.overdue > 0)
      logger.info(
        { events: queued.overdue },
        'resending overdue events that no workflow had reported as due',
      );
    if (queued.overdue + queued.byClock > 0) wake();
  });

  const failing = repeat('the sweep of failing endpoints', FAILING_IDLE_MS, logger, async () => {
    const { told, errors } = await tellOfFailing(orm);
    if (errors.length > 0)
      logger.error(
        { endpoints: errors.length, error: describeError(errors[0]) },
        'could not tell accounts that their webhook endpoints are failing; trying again',
      );
    if (told === 0) return;
    logger.info({ endpoints: told }, 'webhook endpoints are failing, and their accounts were told');
    wake();
  });

  return {
    wake: notifying.wake,
    recorded: () => {
      notifying.wake();
      failing.wakeWithin(FAILING_WITHIN_MS);
    },
    stop: async () => {
      await Promise.all([notifying.stop(), due.stop(), failing.stop()]);
    },
  };
}
