import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import { handOverOverdue } from '../../commands/webhooks/requeue-events.ts';
import { markTold, takeUntold, type UntoldDelivery } from '../../commands/webhooks/take-untold.ts';
import type { Orm } from '../../db/orm.ts';
import type { Tenant } from '../../domain/tenant.ts';
import { repeat } from '../../process/repeat.ts';
import { tellWorkflow } from '../../temporal/deliver-webhook.ts';
import { tellInTurns } from '../tell-in-turns.ts';

/** An account's allowance is there again after as long. */
const IDLE_MS = 200;
const TELL_TIMEOUT_MS = 5_000;
const OVERDUE_INTERVAL_MS = 1_000;

export interface Retries {
  stop(): Promise<void>;
}

/**
 * Keeps the rows of failed events and their workflows together: tells workflows what the relay has recorded, which starts
 * those that there are not yet, and hands the relay what is due though no workflow says so.
 */
export function startRetries(dependencies: {
  orm: Orm;
  client: Client;
  logger: Logger;
  taskQueue: string;
  /** The relay has something to send. */
  wake(): void;
}): Retries {
  const { orm, client, logger, taskQueue, wake } = dependencies;

  async function tell(untold: UntoldDelivery): Promise<void> {
    const { event_id: eventId, partner_id: partnerId, type, mode, status } = untold;
    await client.withDeadline(Date.now() + TELL_TIMEOUT_MS, () =>
      tellWorkflow(
        client,
        { eventId, type, partnerId, mode, taskQueue },
        {
          status,
          attemptCount: untold.attempt_count,
          nextAttemptInMs: Math.max(1, Math.round(untold.next_attempt_in_ms)),
          error: untold.error,
        },
      ),
    );
    // Not before it has heard: a process that dies here tells it again.
    await markTold(orm.em.fork(), untold);
  }

  const telling = tellInTurns({
    ...{ what: 'events', idleMs: IDLE_MS, roundPauseMs: 0, logger, tell },
    take: (after: Tenant | null) => takeUntold(orm.em.fork(), after),
  });
  const overdue = repeat('the sweep of overdue events', OVERDUE_INTERVAL_MS, logger, async () => {
    const count = await handOverOverdue(orm);
    if (count === 0) return;
    logger.info({ events: count }, 'resending overdue events that no workflow had reported as due');
    wake();
  });

  return {
    stop: async () => {
      await Promise.all([telling.stop(), overdue.stop()]);
    },
  };
}
