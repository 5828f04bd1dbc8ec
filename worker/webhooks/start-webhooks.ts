import { createWebhookActivities } from '../../activities/webhooks.ts';
import { createWebhookClient } from '../../adapters/webhooks/webhook-client.ts';
import { webhooksTaskQueue } from '../../config/task-queues.ts';
import { EVENT_WRITTEN, listenToNotifications } from '../../db/notifications.ts';
import { createReadSignalSender } from '../../temporal/signal-sender.ts';
import { createPartWorker, type PartOptions, type WorkerPart } from '../worker-part.ts';
import { MAX_SLOTS } from './endpoint-concurrency.ts';
import { startNotifyingWorkflows } from './notify-workflows.ts';
import { startRelay } from './relay.ts';

/**
 * Starts the delivery of events: the relay, which makes every attempt, and a worker for the workflows that wait between them,
 * on a separate task queue.
 */
export async function startWebhooks(options: PartOptions): Promise<WorkerPart> {
  const { config, orm, ring, client, logger } = options;
  const taskQueue = webhooksTaskQueue(config.taskQueuePrefix);
  const webhooks = createWebhookClient({
    timeoutMs: config.webhookTimeoutMs,
    allowLoopbackHttp: config.webhookAllowLoopbackHttp,
    connectionsPerEndpoint: MAX_SLOTS / 2,
  });
  const worker = await createPartWorker(options, {
    taskQueue,
    versioning: 'AUTO_UPGRADE',
    activities: createWebhookActivities(orm, () => relay.wake(), createReadSignalSender(client)),
    maxCachedWorkflows: 200,
  });
  const relay = startRelay({
    orm,
    ring,
    webhooks,
    logger,
    delaysMs: config.webhookDelaysMs,
    timeoutMs: config.webhookTimeoutMs,
  });
  const notifying = startNotifyingWorkflows({
    orm,
    client,
    logger,
    taskQueue,
    delaysMs: config.webhookDelaysMs,
    wake: relay.wake,
  });
  const listening = listenToNotifications({
    database: options.direct,
    logger,
    on: { [EVENT_WRITTEN]: relay.wake },
    onListening: relay.wake,
  });
  return {
    metrics: relay.metrics,
    worker,
    stop: async () => {
      await listening.stop();
      await Promise.all([relay.stop(), notifying.stop()]);
      await webhooks.close();
    },
  };
}
