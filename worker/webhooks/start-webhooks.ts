import { setTimeout as sleep } from 'node:timers/promises';
import { createWebhookActivities } from '../../activities/webhooks.ts';
import { createWebhookClient } from '../../adapters/webhooks/webhook-client.ts';
import { continueReplays, type ReplayTurn } from '../../commands/webhooks/continue-replays.ts';
import { webhooksTaskQueue } from '../../config/task-queues.ts';
import { ENDPOINT_CHANGED, EVENT_WRITTEN, listenToNotifications } from '../../db/notifications.ts';
import { repeat } from '../../process/repeat.ts';
import { createReadSignalSender } from '../../temporal/signal-sender.ts';
import { createPartWorker, type PartOptions, type WorkerPart } from '../worker-part.ts';
import { MAX_SLOTS } from './endpoint-concurrency.ts';
import { startFollowingEndpoints } from './follow-endpoints.ts';
import { startNotifyingWorkflows } from './notify-workflows.ts';
import { startRelay } from './relay.ts';

const REPLAYS_INTERVAL_MS = 500;
/** Between two looks while a replay is running. */
const REPLAYS_PAUSE_MS = 10;

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
    onRetried: () => notifying.wake(),
  });
  const notifying = startNotifyingWorkflows({
    orm,
    client,
    logger,
    taskQueue,
    wake: relay.wake,
  });
  const following = startFollowingEndpoints({ orm, logger, wakeRelay: relay.wake });
  const replaying = repeat('the replays', REPLAYS_INTERVAL_MS, logger, async (stopping) => {
    let turn: ReplayTurn;
    do {
      turn = await continueReplays(orm, logger);
      if (turn.queued > 0) relay.wake();
      if (turn.isAnyRunning) await sleep(REPLAYS_PAUSE_MS);
    } while (turn.isAnyRunning && !stopping.aborted);
  });
  const listening = listenToNotifications({
    database: options.direct,
    logger,
    on: { [EVENT_WRITTEN]: relay.wake, [ENDPOINT_CHANGED]: following.wake },
    onListening: () => {
      relay.wake();
      following.wake();
    },
  });
  return {
    metrics: relay.metrics,
    worker,
    stop: async () => {
      await listening.stop();
      await Promise.all([relay.stop(), notifying.stop(), following.stop(), replaying.stop()]);
      await webhooks.close();
    },
  };
}
