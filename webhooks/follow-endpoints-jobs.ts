import type { Logger } from 'pino';
import type { Orm } from '../platform/db/orm.ts';
import { describeError } from '../platform/process/describe-error.ts';
import { Waker } from '../worker/waker.ts';
import type { QueuedEndpoint } from './deliveries.ts';
import { type EndpointsTurn, giveUpDeliveries, unparkDeliveries } from './parking.ts';

/** Fallbacks for notifications, which can be lost. The second one looks at each endpoint that has events to send. */
const UNPARK_POLL_MS = 1_000;
const GIVE_UP_POLL_MS = 5_000;

/**
 * Makes deliveries follow their endpoints (docs/decisions/webhook-relay.md): what is parked for an enabled endpoint becomes pending,
 * and what waits for a deleted one is given up.
 */
export function startFollowingEndpoints(dependencies: {
  orm: Orm;
  logger: Logger;
  /** Called when the relay has something to send. */
  wakeRelay(): void;
}): { wake(): void; stop(): Promise<void> } {
  const { orm, logger, wakeRelay } = dependencies;
  const unparking = new Waker(UNPARK_POLL_MS);
  const givingUp = new Waker(GIVE_UP_POLL_MS);

  async function repeatTurns(
    waker: Waker,
    takeTurn: (orm: Orm, after: QueuedEndpoint | null) => Promise<EndpointsTurn>,
  ): Promise<void> {
    let after: QueuedEndpoint | null = null;
    await waker.run(
      async () => {
        const { changed, last } = await takeTurn(orm, after);
        // After the last endpoint, the first ones may have more.
        if (changed > 0 || last !== null || after !== null) waker.wake();
        after = last;
        if (changed > 0) wakeRelay();
      },
      (error) =>
        logger.error(
          { error: describeError(error) },
          'could not send parked events, or give up those of deleted endpoints; trying again',
        ),
    );
  }

  const running = [repeatTurns(unparking, unparkDeliveries), repeatTurns(givingUp, giveUpDeliveries)];
  return {
    wake: () => {
      unparking.wake();
      givingUp.wake();
    },
    stop: async () => {
      unparking.stop();
      givingUp.stop();
      await Promise.all(running);
    },
  };
}
