import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import { expectLateAnswer } from '../../cards/late-answers.ts';
import { listenToNotifications, NETWORK_EVENT_KEPT } from '../../platform/db/notifications.ts';
import type { ServiceDatabase } from '../../platform/db/orm.ts';
import { describeError } from '../../platform/process/describe-error.ts';
import { type Repetition, repeat } from '../../platform/process/repeat.ts';
import { type CardNetwork, CardNetworkUnavailable, type NetworkMessage } from '../card-network.ts';
import { endEvent, eventContext, leaveEvent, type TakenEvent, takeDueEvents } from './kept-events.ts';
import { signalNetworkResult } from './network-result.ts';
import { type ReceivingContext, receiveTransaction } from './receive-transaction.ts';
import type { WhyWaiting } from './tables.ts';

/** How often it looks without being notified. */
const IDLE_MS = 1_000;
/** An event that is slow, because its network is, takes one of these places and holds up no other. */
const MAX_AT_ONCE = 16;

interface ReadEventsOptions extends ReceivingContext {
  direct: ServiceDatabase['direct'];
  client: Client;
  liveNetwork: CardNetwork;
  /** CARD_NETWORK */
  cardNetwork: string;
  logger: Logger;
}

/**
 * Reads the network's events that were kept, and takes everything in them. An event that can't be read now is
 * tried again, and delays no other. If this process dies, another one takes the event again after a minute:
 * what was taken of it changes nothing the second time.
 */
export function startReadingEvents(options: ReadEventsOptions): Pick<Repetition, 'stop'> {
  const { orm, direct, cardNetwork, logger } = options;
  const underWay = new Set<Promise<void>>();

  const looking = repeat("looking for the card network's events", IDLE_MS, logger, async () => {
    const free = MAX_AT_ONCE - underWay.size;
    if (free === 0) return;
    const due = await takeDueEvents(orm, { network: cardNetwork, limit: free });
    for (const event of due) {
      const reading = readKept(options, event).finally(() => {
        underWay.delete(reading);
        // Another one may wait for its place.
        looking.wake();
      });
      underWay.add(reading);
    }
  });

  const listening = listenToNotifications({
    database: direct,
    logger,
    on: { [NETWORK_EVENT_KEPT]: looking.wake },
    onListening: looking.wake,
  });
  return {
    stop: async () => {
      await listening.stop();
      await looking.stop();
      await Promise.all(underWay);
    },
  };
}

/** Never throws. */
async function readKept(options: ReadEventsOptions, event: TakenEvent): Promise<void> {
  const { orm, ring, liveNetwork, logger } = options;
  const names = { eventId: event.id, networkEventId: event.event_id };
  let why: WhyWaiting = 'not_readable';
  try {
    const messages = await liveNetwork.readEvent(ring.openBytes(event.body, eventContext(event.id)));
    why = 'not_taken';
    for (const message of messages) await take(options, message, names);
    await endEvent(orm, { id: event.id });
  } catch (error) {
    if (error instanceof CardNetworkUnavailable) why = 'network_unavailable';
    logger.warn(
      { ...names, attempts: event.attempts, why, error: describeError(error) },
      'could not take an event of the card network; trying again',
    );
    // If this fails too, the event is due again when its minute is over.
    await leaveEvent(orm, event, why).catch(() => {});
  }
}

async function take(
  options: ReadEventsOptions,
  message: NetworkMessage,
  names: { eventId: string; networkEventId: string },
): Promise<void> {
  const { orm, client, cardNetwork, logger } = options;
  switch (message.type) {
    case 'outcome': {
      const { subject, token } = message;
      const isRunning = await signalNetworkResult(client, subject, token);
      // The operation has ended. The network may still contradict its end, so it is looked up.
      if (!isRunning) await expectLateAnswer(orm, { kind: subject, id: token });
      return;
    }
    case 'transaction': {
      const { body, transaction } = message;
      const received = await receiveTransaction(
        options,
        { network: cardNetwork, body, transaction },
        () => {},
      );
      if ('messageId' in received && received.keptNow !== null) {
        const { messageId, keptNow: reason } = received;
        const { networkTransactionId } = transaction;
        logger.warn(
          { ...names, messageId, networkTransactionId, reason },
          'kept a transaction that can not be booked now',
        );
      }
      return;
    }
    case 'request':
      throw new Error('a kept event asks for a decision, which nobody waits for any more');
  }
}
