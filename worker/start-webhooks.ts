import { setTimeout as sleep } from 'node:timers/promises';
import { webhooksTaskQueue } from '../platform/config/task-queues.ts';
import { ENDPOINT_CHANGED, EVENT_WRITTEN, listenToNotifications } from '../platform/db/notifications.ts';
import { repeat } from '../platform/process/repeat.ts';
import { createReadSignalSender } from '../platform/temporal/signal-sender.ts';
import { createWebhookActivities } from '../webhooks/activities.ts';
import { createWebhookClient } from '../webhooks/client/webhook-client.ts';
import { MAX_SLOTS } from '../webhooks/endpoint-concurrency.ts';
import { startFollowingEndpoints } from '../webhooks/follow-endpoints-jobs.ts';
import { startNotifyingWorkflows } from '../webhooks/notify-workflows-jobs.ts';
import { MAX_IN_FLIGHT, startRelay } from '../webhooks/relay-jobs.ts';
import { continueReplays, type ReplayTurn } from '../webhooks/replays/continue.ts';
import { createPartWorker, type PartOptions, type WorkerPart } from './worker-part.ts';

/** A fallback for notifications, which can be lost. */
const REPLAYS_POLL_MS = 5_000;
/** Between two looks while a replay is running. */
const REPLAYS_PAUSE_MS = 10;

/**
 * Starts the delivery of events: the relay, which makes every attempt, and a worker for the workflows that
 * wait between them, on a separate task queue.
 */
export async function startWebhooks(options: PartOptions): Promise<WorkerPart> {
  const { config, orm, ring, client, logger } = options;
  const taskQueue = webhooksTaskQueue(config.taskQueuePrefix);
  const webhooks = createWebhookClient({
    timeoutMs: config.webhookTimeoutMs,
    allowLoopbackHttp: config.webhookAllowLoopbackHttp,
    connectionsPerEndpoint: MAX_SLOTS / 2,
    endpointsKept: MAX_IN_FLIGHT,
  });
  const worker = await createPartWorker(options, {
    taskQueue,
    versioning: 'AUTO_UPGRADE',
    activities: createWebhookActivities(orm, () => changed(), createReadSignalSender(client)),
    maxCachedWorkflows: 200,
  });
  const relay = startRelay({
    orm,
    ring,
    webhooks,
    logger,
    delaysMs: config.webhookDelaysMs,
    timeoutMs: config.webhookTimeoutMs,
    onRetried: () => notifying.recorded(),
    onParked: () => {
      notifying.wake();
      following.wake();
    },
  });
  const notifying = startNotifyingWorkflows({
    orm,
    client,
    logger,
    taskQueue,
    wake: relay.wake,
  });
  const changed = () => {
    relay.wake();
    notifying.wake();
  };
  const following = startFollowingEndpoints({ orm, logger, changed });
  const replaying = repeat('the replays', REPLAYS_POLL_MS, logger, async (stopping) => {
    let turn: ReplayTurn;
    do {
      turn = await continueReplays(orm, logger);
      if (turn.queued > 0) relay.wake();
      if (turn.isAnyRunning) await sleep(REPLAYS_PAUSE_MS);
    } while (turn.isAnyRunning && !stopping.aborted);
  });
  const endpointsChanged = () => {
    following.wake();
    replaying.wake();
  };
  const listening = listenToNotifications({
    database: options.direct,
    logger,
    on: { [EVENT_WRITTEN]: relay.wake, [ENDPOINT_CHANGED]: endpointsChanged },
    onListening: () => {
      relay.wake();
      endpointsChanged();
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
