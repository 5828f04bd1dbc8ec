import type { Logger } from 'pino';
import type { Metric } from 'prom-client';
import { isLockTimeout } from '../platform/db/is-retryable.ts';
import { untilNoConflict } from '../platform/db/transaction.ts';
import { coalesce } from '../platform/process/coalesce.ts';
import { describeError } from '../platform/process/describe-error.ts';
import { repeat } from '../platform/process/repeat.ts';
import type { CommandContext } from '../requests/command-context.ts';
import type { WebhookClient } from './client/webhook-client.ts';
import {
  type Attempt,
  type Delivery,
  type DeliveryKey,
  giveUpLost,
  type QueuedEndpoint,
  recordAttempts,
  takeDeliveries,
} from './deliveries.ts';
import { EndpointConcurrency, type EndpointsRead } from './endpoint-concurrency.ts';
import { disableEndpoint } from './endpoint-status.ts';
import { createRelayMetrics } from './metrics.ts';
import { parkDeliveries } from './parking.ts';
import { openEndpointSecret, signEvent } from './secrets.ts';

/** How many events a worker sends or records at once. */
export const MAX_IN_FLIGHT = 2_000;
const MAX_TAKEN = 250;
const MAX_RECORDED = 500;
/**
 * How long the record of several endpoints waits for a row that somebody holds, and then that of one alone.
 */
const MAX_LOCK_TOGETHER_MS = 500;
const MAX_LOCK_MS = 4_000;
/** A fallback for notifications, which can be lost. */
const POLL_MS = 1_000;
/**
 * A lease lasts for two attempts (the event's own and the one whose connection it waits for) plus this margin
 * for recording.
 */
const MARGIN_MS = 10_000;
const GONE = 410;

interface RelayDependencies extends CommandContext {
  webhooks: WebhookClient;
  logger: Logger;
  /** How long to wait after each failed attempt; there is one more attempt than there are delays. */
  delaysMs: number[];
  /** How long an attempt may take. */
  timeoutMs: number;
  /** How many events it sends or records at once. */
  maxInFlight?: number;
  /** Milliseconds of a monotonic clock. */
  now?(): number;
  /** Called when an attempt is recorded of which a workflow has to hear. */
  onRetried(): void;
  /** Called when deliveries were parked: their endpoints may be enabled by now. */
  onParked(): void;
}

interface Relay {
  /** Makes it look for events to send. */
  wake(): void;
  metrics: Metric[];
  /** Takes no more events, and resolves when those in progress are done. */
  stop(): Promise<void>;
}

/** A delivery whose endpoint is enabled. */
type Sendable = Delivery & { url: string; body: string };

/**
 * Makes every attempt of every delivery, straight from its row: the first within milliseconds of the commit,
 * and retries when they are pending, all within the limits of their endpoints. A crash between an attempt and
 * its record repeats the attempt and loses nothing.
 */
export function startRelay(dependencies: RelayDependencies): Relay {
  const { orm, logger, maxInFlight = MAX_IN_FLIGHT, now } = dependencies;
  const concurrency = new EndpointConcurrency(maxInFlight, now);
  const record = createAttemptRecorder(dependencies);
  const inProgress = new Set<Promise<void>>();
  const metrics = createRelayMetrics({
    inFlight: () => inProgress.size,
    endpoints: () => concurrency.count(),
  });
  /** Where the next read begins. */
  const after: Record<EndpointsRead, QueuedEndpoint | null> = { all: null, proven: null };

  async function take(): Promise<Delivery[]> {
    const limit = Math.min(MAX_TAKEN, maxInFlight - inProgress.size);
    if (limit <= 0) return [];
    const read = concurrency.nextRead();
    const request = {
      freeSlots: concurrency.freeSlots(read),
      initialSlots: concurrency.initialSlots(read),
      freeReplaySlots: concurrency.freeReplaySlots(),
      replaySlots: concurrency.replaySlots,
      limit,
      leaseMs: 2 * dependencies.timeoutMs + MARGIN_MS,
      after: after[read],
    };
    const taken = await takeDeliveries(orm, request);
    const last = taken.at(-1);
    // If the limit was reached, the next read continues after the last endpoint; otherwise all later ones
    // were read.
    const wrapped = after[read] !== null && taken.length < limit;
    after[read] = last !== undefined && taken.length === limit ? last : null;
    if (wrapped) relaying.wake();
    return taken;
  }

  function begin(taken: readonly Delivery[]): void {
    const unsendable: DeliveryKey[] = [];
    const lost: DeliveryKey[] = [];
    for (const delivery of taken) {
      if (isSendable(delivery)) start(delivery);
      else if (delivery.body === null) lost.push(toKey(delivery));
      else unsendable.push(toKey(delivery));
    }
    if (lost.length > 0) {
      const eventIds = lost.map(({ eventId }) => eventId);
      logger.error({ eventIds }, 'gave up deliveries of events that are no longer kept');
      track(giveUpLost(orm, lost), lost);
    }
    if (unsendable.length > 0) track(park(unsendable), unsendable);
  }

  function start(delivery: Sendable): void {
    const attempt = concurrency.acquire(delivery.endpoint_id, delivery.partner_id, delivery.replayed);
    // The slot is free as soon as the receiver has responded, before the attempt is recorded.
    const releaseSlot = (succeededInMs: number | null) => {
      attempt.release(succeededInMs);
      relaying.wake();
    };
    const sent = send(delivery, releaseSlot).finally(() => {
      attempt.release(null);
      attempt.end();
    });
    track(sent, [toKey(delivery)]);
  }

  async function send(
    delivery: Sendable,
    releaseSlot: (succeededInMs: number | null) => void,
  ): Promise<void> {
    const attempt = await attemptDelivery(dependencies, delivery);
    metrics.observe(attempt);
    releaseSlot(attempt.error === null ? attempt.durationMs : null);
    if (attempt.isGone) return parkGone(delivery, attempt);
    await record(attempt);
    if (attempt.error !== null || delivery.schedule_attempts > 0) dependencies.onRetried();
  }

  /**
   * The receiver wants no more events: its endpoint is disabled, and this event is parked with the others.
   */
  async function parkGone(delivery: Sendable, attempt: Attempt): Promise<void> {
    const { endpoint_id: endpointId, partner_id: partnerId, mode, url } = delivery;
    await disableEndpoint(orm, { partnerId, mode, endpointId, url, reason: 'it answered 410 Gone' });
    await record(attempt);
    await park([toKey(delivery)]);
  }

  async function park(deliveries: DeliveryKey[]): Promise<void> {
    await parkDeliveries(orm, deliveries);
    dependencies.onParked();
  }

  function track(work: Promise<void>, deliveries: DeliveryKey[]): void {
    const tracked = work
      .catch((error: unknown) =>
        logger.error(
          { eventIds: deliveries.map(({ eventId }) => eventId), error: describeError(error) },
          'could not send events; trying again when their lease expires',
        ),
      )
      .then(() => {
        inProgress.delete(tracked);
        relaying.wake();
      });
    inProgress.add(tracked);
  }

  const relaying = repeat('reading events to send', POLL_MS, logger, async () => begin(await take()));

  return {
    metrics: metrics.all,
    wake: relaying.wake,
    stop: async () => {
      await relaying.stop();
      await Promise.all(inProgress);
    },
  };
}

const toKey = ({ event_id: eventId, endpoint_id: endpointId }: Delivery): DeliveryKey => ({
  eventId,
  endpointId,
});

const isSendable = (delivery: Delivery): delivery is Sendable =>
  delivery.url !== null && delivery.body !== null && delivery.endpoint_status === 'enabled';

/**
 * Sends an event once, signed at that moment, to its endpoint. Whatever the receiver does is not an error.
 */
async function attemptDelivery(
  { ring, webhooks }: Pick<RelayDependencies, 'ring' | 'webhooks'>,
  delivery: Sendable,
): Promise<Attempt> {
  const { event_id: eventId, endpoint_id: endpointId, body, url, previous_secret: previous } = delivery;
  const endpoint = { ...delivery, id: endpointId };
  const current = openEndpointSecret(ring, endpoint, delivery.secret);
  let startedAt = new Date();
  const sign = () => {
    startedAt = new Date();
    return signEvent({
      eventId,
      body,
      secrets: previous === null ? [current] : [current, openEndpointSecret(ring, endpoint, previous)],
      standardWebhooks: delivery.standard_headers,
      nowMs: startedAt.getTime(),
    });
  };
  const result = await webhooks.deliver({ endpointId, url, body, sign });
  const { outcome, httpStatus, durationMs } = result;
  const made = { eventId, endpointId, startedAt, durationMs, httpStatus, isGone: httpStatus === GONE };
  if (outcome === 'delivered') return { ...made, error: null, answerStart: null };
  return { ...made, error: result.error ?? `http_${httpStatus}`, answerStart: result.answerStart };
}

/**
 * Records attempts; those that end at the same time share one statement.
 * @returns a function that resolves when its attempt is recorded, or could not be: the event is then sent
 * again
 */
function createAttemptRecorder({
  orm,
  ring,
  logger,
  delaysMs,
}: RelayDependencies): (attempt: Attempt) => Promise<void> {
  const record = (attempts: readonly Attempt[], maxLockMs: number) =>
    untilNoConflict(() => recordAttempts({ orm, ring }, attempts, delaysMs, maxLockMs));
  const logFailure = (attempts: readonly Attempt[], error: unknown) =>
    logger.error(
      { events: attempts.length, error: describeError(error) },
      'could not record webhook attempts; the events are sent again when their leases expire',
    );
  return coalesce<Attempt, void>({
    maxTogether: MAX_RECORDED,
    laneOf: ({ endpointId }) => endpointId,
    async run(attempts) {
      try {
        await record(attempts, MAX_LOCK_TOGETHER_MS);
        return [];
      } catch (error) {
        if (!isLockTimeout(error)) {
          logFailure(attempts, error);
          return [];
        }
      }
      // Somebody holds the row of one of the endpoints. Only what that one has had waits for it.
      const alone = new Map<string, Promise<void>>();
      for (const [endpointId, own] of Map.groupBy(attempts, ({ endpointId }) => endpointId)) {
        const recorded = record(own, MAX_LOCK_MS).catch((error: unknown) => logFailure(own, error));
        alone.set(endpointId, recorded);
      }
      return attempts.map(({ endpointId }) => alone.get(endpointId));
    },
  });
}
