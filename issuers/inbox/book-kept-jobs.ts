import type { Logger } from 'pino';
import type { KeyRing } from '../../platform/crypto/key-ring.ts';
import { CARD_IDENTIFIED, listenToNotifications, notifyEvents } from '../../platform/db/notifications.ts';
import type { Orm, ServiceDatabase } from '../../platform/db/orm.ts';
import { describeError } from '../../platform/process/describe-error.ts';
import { type Repetition, repeat } from '../../platform/process/repeat.ts';
import { asAccount } from '../../platform/process/work-context.ts';
import { bookMessage, type DueMessage, hurryMessages, takeDueMessages } from './book-messages.ts';

/** How often it looks without being notified. */
const IDLE_MS = 2_000;
const MAX_AT_ONCE = 100;

/**
 * Books the network's transactions that were kept because their card was not known or not issued yet, in the
 * order in which they arrived: as soon as the card is issued, and by looking every two seconds. A card that
 * is locked delays no other.
 */
export function startBookingKept(dependencies: {
  orm: Orm;
  direct: ServiceDatabase['direct'];
  ring: KeyRing;
  /** How long an authorization holds its amount at most. */
  authorizationTtlMs: number;
  logger: Logger;
}): Pick<Repetition, 'stop'> {
  const { orm, direct, logger } = dependencies;
  const booking = repeat('looking for kept transactions', IDLE_MS, logger, async () => {
    const due = await takeDueMessages(orm, { limit: MAX_AT_ONCE });
    if (due.length === MAX_AT_ONCE) booking.wake();
    const cards = Map.groupBy(due, (message) => message.network_card_id);
    const booked = await Promise.all([...cards.values()].map(bookCardMessages));
    if (booked.includes(true)) await notifyEvents(orm);
  });

  /** Never throws. @returns whether any was booked or applied, so that there are events to send */
  async function bookCardMessages(messages: DueMessage[]): Promise<boolean> {
    let isAnyBooked = false;
    for (const { id, partner_id: partnerId } of messages.sort((a, b) => (a.id < b.id ? -1 : 1))) {
      try {
        const ended = await asAccount({ partnerId, mode: 'live' }, () => bookMessage(dependencies, id));
        if (ended?.status === 'applied') {
          isAnyBooked = true;
          const { authorizationId } = ended;
          logger.info({ messageId: id, authorizationId }, 'applied a kept message about an authorization');
        }
        if (ended?.status === 'booked') {
          isAnyBooked = true;
          logger.info({ messageId: id, transactionId: ended.transaction_id }, 'booked a kept transaction');
        }
      } catch (error) {
        logger.error(
          { messageId: id, error: describeError(error) },
          'could not book a kept transaction; trying again within seconds',
        );
        break;
      }
    }
    return isAnyBooked;
  }

  const listening = listenToNotifications({
    database: direct,
    logger,
    on: {
      [CARD_IDENTIFIED]: (networkCardId) =>
        void hurryMessages(orm, { networkCardId }).then(booking.wake, booking.wake),
    },
    onListening: booking.wake,
  });
  return {
    stop: async () => {
      await listening.stop();
      await booking.stop();
    },
  };
}
