import type { Logger } from 'pino';
import type { WebhookClient } from '../../adapters/webhooks/webhook-client.ts';
import type { CommandContext } from '../../commands/command-context.ts';
import { disableEndpoint } from '../../commands/webhooks/disable-endpoint.ts';
import { parkDeliveries } from '../../commands/webhooks/park-deliveries.ts';
import { type TakenDelivery, takeDeliveries } from '../../commands/webhooks/take-deliveries.ts';
import { describeError } from '../../domain/describe-error.ts';
import { Waker } from '../waker.ts';
import { type AttemptMade, attemptWebhook, type Delivery } from './attempt-webhook.ts';
import { Outcomes } from './outcomes.ts';
import { Rooms } from './rooms.ts';

const MOST_IN_FLIGHT = 2_000;
const MOST_TAKEN = 250;
/** A fallback for notifications, which can be lost. */
const POLL_MS = 500;
/** A lease lasts for two attempts (its own and the one whose connection it waits for) plus this, for recording. */
const MARGIN_MS = 10_000;
const GONE = 410;

export interface RelayDependencies extends CommandContext {
  webhooks: WebhookClient;
  logger: Logger;
  /** How long to wait after each failed attempt; there is one more attempt than there are delays. */
  delaysMs: number[];
  /** How long an attempt may take. */
  timeoutMs: number;
}

export interface Relay {
  /** Looks for something to send. */
  wake(): void;
  /** Takes no more events, and resolves when those in progress are done. */
  stop(): Promise<void>;
}

type Sendable = TakenDelivery & Delivery;

const canBeSent = (delivery: TakenDelivery): delivery is Sendable =>
  delivery.url !== null && delivery.endpoint_status === 'enabled';

/**
 * Makes every attempt of every event, straight from its row: the first within milliseconds of the commit, and those that
 * have come due, all within the limits of their endpoints. A crash between an attempt and its record repeats it and loses
 * nothing.
 */
export function startRelay(dependencies: RelayDependencies): Relay {
  const { orm, logger } = dependencies;
  const rooms = new Rooms();
  const outcomes = new Outcomes(orm, logger);
  const underWay = new Set<Promise<void>>();
  const waker = new Waker(POLL_MS);
  let after: { partnerId: string; mode: TakenDelivery['mode'] } | null = null;

  async function take(): Promise<TakenDelivery[]> {
    const limit = Math.min(MOST_TAKEN, MOST_IN_FLIGHT - underWay.size);
    const free = rooms.free();
    const request = {
      free,
      places: rooms.firstRoom,
      limit,
      leaseMs: 2 * dependencies.timeoutMs + MARGIN_MS,
      after,
    };
    const taken = limit > 0 ? await takeDeliveries(orm.em.fork(), request) : [];
    const last = taken.at(-1);
    // A full house goes on behind the last account; otherwise all accounts behind it have been served.
    const wrapped = after !== null && taken.length < limit;
    after =
      last !== undefined && taken.length === limit ? { partnerId: last.partner_id, mode: last.mode } : null;
    if (wrapped) waker.wake();
    return taken;
  }

  async function send(delivery: Sendable, attempted: (succeeded: boolean) => void): Promise<void> {
    const attempt = await attemptWebhook(dependencies, delivery);
    attempted(attempt.error === null);
    if (attempt.error === null)
      return outcomes.record({ ...attempt, status: 'delivered', nextAttemptMs: null });
    if (attempt.httpStatus === GONE) return setAsideGone(delivery, attempt);
    const nextAttemptMs = dependencies.delaysMs[delivery.schedule_attempts] ?? null;
    const status = nextAttemptMs === null ? 'given_up' : 'retrying';
    return outcomes.record({ ...attempt, status, nextAttemptMs });
  }

  /** The receiver wants nothing more: its endpoint is disabled, and this event waits with the others. */
  async function setAsideGone(delivery: Sendable, attempt: AttemptMade): Promise<void> {
    const { event_id: eventId, partner_id: partnerId, mode, url } = delivery;
    await disableEndpoint(orm, { partnerId, mode }, { url, reason: 'it answered 410 Gone' });
    await outcomes.record({ ...attempt, status: 'pending', nextAttemptMs: null });
    await parkDeliveries(orm, [eventId]);
  }

  function start(delivery: Sendable): void {
    const account = { partnerId: delivery.partner_id, mode: delivery.mode };
    let isInside = true;
    // The place is free when the receiver has answered, before that is recorded.
    const leave = (succeeded: boolean) => {
      if (!isInside) return;
      isInside = false;
      rooms.leave(account, succeeded);
      waker.wake();
    };
    rooms.enter(account);
    follow(
      send(delivery, leave).finally(() => leave(false)),
      [delivery.event_id],
    );
  }

  function follow(work: Promise<void>, eventIds: string[]): void {
    const followed = work
      .catch((error: unknown) =>
        logger.error(
          { eventIds, error: describeError(error) },
          'could not send events; trying again when their lease expires',
        ),
      )
      .then(() => {
        underWay.delete(followed);
        waker.wake();
      });
    underWay.add(followed);
  }

  function begin(taken: TakenDelivery[]): void {
    for (const delivery of taken) if (canBeSent(delivery)) start(delivery);
    const eventIds = taken.filter((delivery) => !canBeSent(delivery)).map(({ event_id }) => event_id);
    if (eventIds.length > 0) follow(parkDeliveries(orm, eventIds), eventIds);
  }

  const running = waker.run(
    async () => begin(await take()),
    (error) => logger.error({ error: describeError(error) }, 'the relay could not read events; trying again'),
  );

  return {
    wake: () => waker.wake(),
    stop: async () => {
      waker.stop();
      await running;
      await Promise.all(underWay);
    },
  };
}
