import { sql } from 'kysely';
import type { WhyKept } from '../../domain/network-transaction.ts';
import { settleTransactions } from '../../payments/settle-transactions.ts';
import { takeMessage } from '../../payments/take-message.ts';
import { autocommitStatement } from '../../platform/db/sql.ts';
import { transaction } from '../../platform/db/transaction.ts';
import type { CommandContext } from '../../requests/command-context.ts';
import { endMessage, forgetMessage, type KnownMessage, lockMessage } from './kept-messages.ts';
import {
  findNetworkCard,
  isAuthorizationReport,
  toAuthorizationMessage,
  toSettlement,
  whyKept,
} from './reports.ts';

/**
 * How long a booking waits for a card that is locked: the caller tries again, and others need the connection.
 */
const MAX_LOCK_WAIT_MS = 250;
/**
 * How long nobody else tries a message that has been taken, and how long one is left alone that could not be
 * booked.
 */
const LEASE_MS = 10_000;
const PAUSE_MS = 600_000;
/** The same for one whose authorization is not known: its request may be on its way. */
const UNKNOWN_PAUSE_MS = 30_000;

/** A transaction's refusal, which rolls it back. */
class NotBooked extends Error {
  readonly reason: WhyKept;

  constructor(reason: WhyKept) {
    super(reason);
    this.reason = reason;
  }
}

/**
 * A message about an authorization that has no transaction, such as a reversal. It was applied, and is no
 * longer kept.
 */
export interface AppliedMessage {
  status: 'applied';
  authorizationId: string;
}

/**
 * Books a message that is waiting, if it can be booked now: its transaction and the end of the message commit
 * together. A message that has ended is left as it is.
 * @returns the message as it then is, or what it was applied to; null if there is none
 */
export async function bookMessage(
  { orm, ring, authorizationTtlMs: ttlMs }: CommandContext & { authorizationTtlMs: number },
  messageId: string,
): Promise<KnownMessage | AppliedMessage | null> {
  try {
    return await transaction(orm, async (tx): Promise<KnownMessage | AppliedMessage | null> => {
      const message = await lockMessage(tx, ring, messageId);
      if (message === null || message.status !== 'waiting') return message;
      const { whole } = message.reported;
      if (whole === null) throw new NotBooked('not_understood');
      const card = await findNetworkCard(tx, whole.networkCardId);
      if (card === null) throw new NotBooked('card_unknown');
      if (isAuthorizationReport(whole)) {
        const limits = { ttlMs, lockWaitMs: MAX_LOCK_WAIT_MS };
        const taken = await takeMessage(
          tx,
          toAuthorizationMessage(card, whole, message.network),
          limits,
        ).catch((error) => {
          throw new NotBooked(whyKept(error, card));
        });
        if (taken.transaction === null) {
          // It is remembered as a message about its authorization, and has no transaction to be booked as.
          if (taken.authorization === null)
            throw new Error(`a ${whole.type} was taken without its authorization`);
          await forgetMessage(tx, messageId);
          return { status: 'applied', authorizationId: taken.authorization.id };
        }
        await endMessage(tx, messageId, taken.transaction.id);
        return { id: messageId, status: 'booked', transaction_id: taken.transaction.id };
      }
      const [outcome] = await settleTransactions(
        tx,
        [toSettlement(card, whole, message.network)],
        MAX_LOCK_WAIT_MS,
      ).catch((error) => {
        throw new NotBooked(whyKept(error, card));
      });
      if (outcome === undefined || outcome instanceof Error) throw new NotBooked(whyKept(outcome, card));
      await endMessage(tx, messageId, outcome.transaction.id);
      return { id: messageId, status: 'booked', transaction_id: outcome.transaction.id };
    });
  } catch (error) {
    if (!(error instanceof NotBooked)) throw error;
    const isForCard = error.reason === 'card_unknown' || error.reason === 'card_not_issued';
    // Nobody takes it before its card is issued, and then at once.
    const pauseMs = error.reason === 'authorization_unknown' ? UNKNOWN_PAUSE_MS : PAUSE_MS;
    await leave(orm, { messageId, reason: error.reason, pauseMs: isForCard ? 0 : pauseMs });
    return { id: messageId, status: 'waiting', transaction_id: null };
  }
}

const leave = autocommitStatement(
  (db, { messageId, reason, pauseMs }: { messageId: string; reason: WhyKept; pauseMs: number }) =>
    db
      .updateTable('network_message')
      .set({ reason, retry_after: sql`now() + ${pauseMs} * interval '1 millisecond'` })
      .where('id', '=', messageId)
      .where('status', '=', sql.lit<'waiting'>('waiting')),
);

/** A message that may be bookable now, and its card's account. */
export interface DueMessage {
  id: string;
  partner_id: string;
  network_card_id: string;
}

/**
 * Takes messages whose card is known and no longer being issued, those first that were tried longest ago.
 * Nobody else takes them for ten seconds.
 */
export const takeDueMessages = autocommitStatement(
  (_, { limit }: { limit: number }) => sql<DueMessage>`
    UPDATE network_message m SET retry_after = now() + ${sql.lit(LEASE_MS)} * interval '1 millisecond'
    FROM (
      SELECT w.id, c.partner_id FROM network_message w
      JOIN card c ON c.network_card_id = w.network_card_id AND c.mode = 'live' AND c.status <> 'funding_pending'
      WHERE w.status = 'waiting' AND w.retry_after < now()
      ORDER BY w.retry_after, w.id LIMIT ${limit} FOR NO KEY UPDATE OF w SKIP LOCKED
    ) due
    WHERE m.id = due.id RETURNING m.id, due.partner_id, m.network_card_id`,
  { acrossTenants: 'network' },
);

/** Makes the messages for a card due at once. */
export const hurryMessages = autocommitStatement((db, { networkCardId }: { networkCardId: string }) =>
  db
    .updateTable('network_message')
    .set({ retry_after: sql`'-infinity'` })
    .where('network_card_id', '=', networkCardId)
    .where('status', '=', sql.lit<'waiting'>('waiting')),
);
