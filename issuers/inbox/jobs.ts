import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import {
  CARD_IDENTIFIED,
  listenToNotifications,
  NETWORK_INBOX,
  notifyEvents,
} from '../../platform/db/notifications.ts';
import type { ServiceDatabase } from '../../platform/db/orm.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { describeError } from '../../platform/process/describe-error.ts';
import { type Repetition, repeat } from '../../platform/process/repeat.ts';
import type { CommandContext } from '../../requests/command-context.ts';
import { type CardNetwork, CardNetworkUnavailable, isReadable, TurnMissed } from '../card-network.ts';
import { bookRead, type ReadPayment } from './book-payment.ts';
import {
  endObject,
  hurryCard,
  leaveObject,
  type NotBooked,
  stateContext,
  type TakenObject,
  takeDueObjects,
  takePaymentsToRead,
} from './inbox.ts';
import { noteOutcome } from './network-result.ts';
import { takeWaiting } from './simulated-messages.ts';

/** How often it looks without being notified. */
const IDLE_MS = 1_000;
const MISSED_TURN_PAUSE_MS = 2_000;
/** What is slow, because its network is, takes one of these places and holds up no other. */
const MAX_AT_ONCE = 16;
const MAX_READ_AGAIN = 100;

interface InboxOptions extends CommandContext {
  direct: ServiceDatabase['direct'];
  client: Client;
  liveNetwork: CardNetwork;
  /** CARD_NETWORK */
  cardNetwork: string;
  /** How long an authorization holds its amount at most. */
  authorizationTtlMs: number;
  logger: Logger;
}

/**
 * Looks at what has changed at the network, and books it. What can't be booked now is tried again, and delays
 * no other. If this process dies, another one takes it again after a minute: what was booked of it changes
 * nothing the second time.
 */
export function startInbox(options: InboxOptions): Pick<Repetition, 'stop'> {
  const { orm, direct, cardNetwork, logger } = options;
  const underWay = new Set<Promise<void>>();

  const looking = repeat("looking for the card network's changes", IDLE_MS, logger, async () => {
    const free = MAX_AT_ONCE - underWay.size;
    if (free === 0) return;
    for (const taken of await takeDueObjects(orm, { network: cardNetwork, limit: free })) {
      const work = lookAt(options, taken).finally(() => {
        underWay.delete(work);
        // Another one may wait for its place.
        looking.wake();
      });
      underWay.add(work);
    }
  });
  const reading = repeat('looking for payments to read again', IDLE_MS, logger, async () => {
    // The simulated network has nothing to be read.
    if (cardNetwork === 'simulated') return;
    const due = await takePaymentsToRead(orm, { network: cardNetwork, limit: MAX_READ_AGAIN });
    if (due.length > 0) looking.wake();
    if (due.length === MAX_READ_AGAIN) reading.wake();
  });
  const listening = listenToNotifications({
    database: direct,
    logger,
    on: {
      [NETWORK_INBOX]: looking.wake,
      [CARD_IDENTIFIED]: (networkCardId) =>
        void hurryCard(orm, { networkCardId }).then(looking.wake, looking.wake),
    },
    onListening: looking.wake,
  });
  return {
    stop: async () => {
      await listening.stop();
      await Promise.all([looking.stop(), reading.stop()]);
      await Promise.all(underWay);
    },
  };
}

/** Never throws. */
async function lookAt(options: InboxOptions, taken: TakenObject): Promise<void> {
  const { orm, logger } = options;
  const { id, kind, attempts } = taken;
  const left: NotBooked = { reason: 'not_taken', networkCardId: null, elements: [] };
  let waits: NotBooked | null;
  let pauseMs: number | undefined;
  try {
    waits = kind === 'transfer' ? await takeTransfer(options, taken) : await takePayment(options, taken);
    if (waits !== null) logger.warn({ id, attempts, reason: waits.reason }, 'a payment waits to be booked');
  } catch (error) {
    waits = error instanceof CardNetworkUnavailable ? { ...left, reason: 'network_unavailable' } : left;
    // The network was not asked, so there is no reason to ask it less often.
    if (error instanceof TurnMissed) pauseMs = MISSED_TURN_PAUSE_MS;
    logger.warn(
      { id, kind, attempts, reason: waits.reason, error: describeError(error) },
      'could not take what has changed at the card network; trying again',
    );
  }
  // If this fails too, it is due again when its minute is over.
  if (waits !== null) await leaveObject(orm, taken, waits, pauseMs).catch(() => {});
}

async function takeTransfer(options: InboxOptions, taken: TakenObject): Promise<null> {
  const outcome = await options.liveNetwork.readTransfer(taken.id);
  if (outcome !== null) await noteOutcome(options, outcome);
  await transaction(options.orm, (tx) => endObject(tx, taken));
  return null;
}

/** @returns why it can't be booked now; null if it was */
async function takePayment(options: InboxOptions, taken: TakenObject): Promise<NotBooked | null> {
  const { orm, cardNetwork } = options;
  if (cardNetwork === 'simulated') {
    const { waits, isBooked } = await takeWaiting(options, taken);
    if (isBooked) await notifyEvents(orm);
    return waits;
  }
  const read = await readTaken(options, taken);
  if (read === null) return { reason: 'not_readable', networkCardId: null, elements: [] };
  const booked = await bookRead(options, read, (tx) => endObject(tx, taken));
  if (booked !== null && 'reason' in booked) return booked;
  if (booked?.isChanged) await notifyEvents(orm);
  return null;
}

/** @returns null if this release can't read it */
async function readTaken(
  { ring, liveNetwork }: InboxOptions,
  { id, body, taken_at: takenAt }: TakenObject,
): Promise<ReadPayment | null> {
  const sent = body && liveNetwork.snapshotOf(ring.openBytes(body, stateContext(id)));
  if (sent !== null) return { paymentId: id, snapshot: sent, readAt: null };
  const snapshot = await liveNetwork.readPayment(id, 'event');
  const readAt = new Date(takenAt);
  return snapshot === null || isReadable(snapshot) ? { paymentId: id, snapshot, readAt } : null;
}
