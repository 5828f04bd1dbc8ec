import type { Logger } from 'pino';
import type { Orm } from '../platform/db/orm.ts';
import { type Repetition, repeat } from '../platform/process/repeat.ts';
import type { QueuedEndpoint } from './deliveries.ts';
import { type EndpointsTurn, giveUpDeliveries, unparkDeliveries } from './parking.ts';

/** A fallback for notifications, which can be lost. */
const POLL_MS = 5_000;

/**
 * Makes deliveries follow their endpoints (docs/decisions/webhook-relay.md): what is parked for an enabled
 * endpoint becomes pending, and what waits for a deleted one is given up.
 */
export function startFollowingEndpoints(dependencies: {
  orm: Orm;
  logger: Logger;
  /** Called when there is something to send, or to tell workflows. */
  changed(): void;
}): { wake(): void; stop(): Promise<void> } {
  const { orm, logger, changed: tellOthers } = dependencies;

  function follow(
    what: string,
    takeTurn: (orm: Orm, after: QueuedEndpoint | null) => Promise<EndpointsTurn>,
  ): Repetition {
    let after: QueuedEndpoint | null = null;
    const following = repeat(what, POLL_MS, logger, async () => {
      const { changed, last } = await takeTurn(orm, after);
      // After the last endpoint, the first ones may have more.
      if (changed > 0 || last !== null || after !== null) following.wake();
      after = last;
      if (changed > 0) tellOthers();
    });
    return following;
  }

  const unparking = follow('sending parked events', unparkDeliveries);
  const givingUp = follow('giving up events of deleted endpoints', giveUpDeliveries);
  return {
    wake: () => {
      unparking.wake();
      givingUp.wake();
    },
    stop: async () => {
      await Promise.all([unparking.stop(), givingUp.stop()]);
    },
  };
}
