import { sql } from 'kysely';
import type { Orm } from '../../db/orm.ts';
import { autocommitStatement, type Reader, readStatement } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import { ApiError } from '../../domain/api-error.ts';
import type { CardStatus } from '../../domain/card-status.ts';
import type {
  NetworkAuthorizationReport,
  NetworkAuthorizationRequest,
  NetworkTransaction,
  WhyKept,
} from '../../domain/network-transaction.ts';
import { asAccount } from '../../process/work-context.ts';
import {
  type AuthorizationMessage,
  AuthorizationUnknown,
  takeMessage,
} from '../authorizations/network-messages.ts';
import type { CommandContext } from '../command-context.ts';
import {
  endMessage,
  findMessage,
  forgetMessage,
  type KnownMessage,
  keepMessage,
  lockMessage,
  type ReportedMessage,
} from './kept-messages.ts';
import { settleTransactions } from './settle-transactions.ts';
import type { Settlement } from './settlement.ts';
import type { SettlementQueue } from './settlement-queue.ts';

/** How long a booking waits for a card that is locked: the caller tries again, and others need the connection. */
const MAX_LOCK_WAIT_MS = 250;
/** How long nobody else tries a message that has been taken, and how long one is left alone that could not be booked. */
const LEASE_MS = 10_000;
const PAUSE_MS = 600_000;
/** The same for one whose authorization is not known: its request may be on its way. */
const UNKNOWN_PAUSE_MS = 30_000;

/** A live card, as far as a transaction on it needs to know. */
export interface NetworkCardOwner {
  cardId: string;
  partnerId: string;
  mode: 'live';
  status: CardStatus;
}

/** What became of a report: the id of its transaction, of the authorization it ended, or of the message that is kept for it. */
export type Received =
  | { transactionId: string }
  | { authorizationId: string }
  | { messageId: string; keptNow: WhyKept | null };

interface ReceivingContext extends CommandContext {
  settlements: SettlementQueue;
  /** How long an authorization holds its amount at most. */
  authorizationTtlMs: number;
  /** Called after a kept transaction was booked. */
  eventsWritten(): void;
}

/**
 * Takes a transaction that the network reports: settles it, or keeps it if it can't be booked now, so that the network need
 * not repeat it. A repeated one gets the same result and changes nothing.
 * @throws ApiError `unavailable` if it can't be booked and nothing more can be kept
 */
export async function receiveTransaction(
  context: ReceivingContext,
  report: ReportedMessage,
  onCard: (card: NetworkCardOwner) => void,
): Promise<Received> {
  const { orm, ring, settlements, authorizationTtlMs, eventsWritten } = context;
  const { networkCardId, networkTransactionId, whole } = report.transaction;
  const [found] = await lookUp(orm.em.fork(), {
    network: report.network,
    networkTransactionId,
    networkCardId,
  });
  const card = found?.id == null ? null : toOwner(found as FoundCard);
  if (card !== null) onCard(card);
  if (found?.has_messages) {
    const known = await findMessage(orm, ring, report);
    if (known?.status === 'waiting' && card !== null) {
      const ended = await asAccount(card, () => bookMessage(context, known.id));
      if (ended?.status === 'booked' || ended?.status === 'applied') eventsWritten();
      return receivedAs(ended ?? known);
    }
    if (known !== null) return receivedAs(known);
  }
  const settled =
    whole !== null && card !== null && isAuthorizationReport(whole)
      ? await asAccount(card, () => takeOrExplain(orm, card, whole, authorizationTtlMs))
      : await settleOrExplain(settlements, card, whole);
  if (typeof settled !== 'string' && whole !== null && isAuthorizationReport(whole)) eventsWritten();
  if (typeof settled !== 'string') return settled;
  const kept = await keepMessage(orm, ring, report, settled);
  return kept.isNew ? { messageId: kept.id, keptNow: settled } : receivedAs(kept);
}

function receivedAs(message: KnownMessage | AppliedMessage): Received {
  if (message.status === 'applied') return { authorizationId: message.authorizationId };
  const { id, transaction_id: transactionId } = message;
  return transactionId === null ? { messageId: id, keptNow: null } : { transactionId };
}

async function settleOrExplain(
  settlements: SettlementQueue,
  card: NetworkCardOwner | null,
  reported: NetworkTransaction | NetworkAuthorizationReport | null,
): Promise<{ transactionId: string } | WhyKept> {
  if (reported === null) return 'not_understood';
  if (card === null || isAuthorizationReport(reported)) return 'card_unknown';
  try {
    const { transaction } = await settlements.settle(toSettlement(card, reported));
    return { transactionId: transaction.id };
  } catch (error) {
    return whyKept(error, card);
  }
}

async function takeOrExplain(
  orm: Orm,
  card: NetworkCardOwner,
  reported: NetworkAuthorizationReport,
  ttlMs: number,
): Promise<{ transactionId: string } | { authorizationId: string } | WhyKept> {
  try {
    const taken = await transaction(orm, (tx) =>
      takeMessage(tx, toAuthorizationMessage(card, reported), { ttlMs, lockWaitMs: null }),
    );
    if (taken.transaction !== null) return { transactionId: taken.transaction.id };
    if (taken.authorization === null)
      throw new Error(`a ${reported.type} was taken without its authorization`);
    return { authorizationId: taken.authorization.id };
  } catch (error) {
    return whyKept(error, card);
  }
}

const isAuthorizationReport = (
  reported: NetworkTransaction | NetworkAuthorizationReport,
): reported is NetworkAuthorizationReport => 'final' in reported;

/** What the network says about an authorization of a live card. */
export function toAuthorizationMessage(
  { cardId, partnerId, mode }: Omit<NetworkCardOwner, 'status'>,
  reported: NetworkAuthorizationReport | NetworkAuthorizationRequest,
): AuthorizationMessage {
  const { name, city, country, categoryCode } = reported.merchant;
  const isRequest = reported.type === 'authorization' || reported.type === 'increment';
  return {
    partnerId,
    mode,
    cardId,
    networkCardId: reported.networkCardId,
    type: reported.type,
    messageId: reported.networkTransactionId,
    // A new authorization is named after its request, unless the network gives it a name of its own.
    networkAuthorizationId:
      reported.networkAuthorizationId ?? (isRequest ? reported.networkTransactionId : null),
    amountCents: reported.amountCents,
    isFinal: 'final' in reported ? reported.final : true,
    expiresAt: 'final' in reported ? reported.expiresAt : null,
    place: 'final' in reported ? (reported.approvalNumber ?? reported.requestNumber) : null,
    merchant: { name, city, country, category_code: categoryCode },
  };
}

/** The settlement of a transaction that the network reports on a live card. */
export function toSettlement(
  card: Omit<NetworkCardOwner, 'status'>,
  reported: NetworkTransaction,
): Settlement {
  const { cardId, partnerId, mode } = card;
  const { name, city, country, categoryCode } = reported.merchant;
  return {
    partnerId,
    mode,
    cardId,
    networkTransactionId: reported.networkTransactionId,
    type: reported.type,
    amountCents: reported.amountCents,
    forced: reported.forced,
    simulated: false,
    merchant: { name, city, country, category_code: categoryCode },
  };
}

/** Why a settlement was refused. @throws the error, if it is no refusal */
function whyKept(error: unknown, card: NetworkCardOwner): WhyKept {
  if (error instanceof AuthorizationUnknown) return 'authorization_unknown';
  if (error instanceof ApiError) {
    if (error.code === 'invalid_state') return card.status === 'failed' ? 'card_failed' : 'card_not_issued';
    if (error.code === 'idempotency_conflict') return 'id_conflict';
    if (error.code === 'validation_failed') return 'unbookable';
    if (error.code === 'card_not_found') return 'card_unknown';
  }
  throw error;
}

/** A transaction's refusal, which rolls it back. */
class NotBooked extends Error {
  readonly reason: WhyKept;

  constructor(reason: WhyKept) {
    super(reason);
    this.reason = reason;
  }
}

/** A message about an authorization that has no transaction, such as a reversal. It was applied, and is no longer kept. */
interface AppliedMessage {
  status: 'applied';
  authorizationId: string;
}

/**
 * Books a message that is waiting, if it can be booked now: its transaction and the end of the message commit together. A
 * message that has ended is left as it is.
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
        const taken = await takeMessage(tx, toAuthorizationMessage(card, whole), limits).catch((error) => {
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
      const [outcome] = await settleTransactions(tx, [toSettlement(card, whole)], MAX_LOCK_WAIT_MS).catch(
        (error) => {
          throw new NotBooked(whyKept(error, card));
        },
      );
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
 * Takes messages whose card is known and no longer being issued, those first that were tried longest ago. Nobody else
 * takes them for ten seconds.
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

/** Our card with this id at the live network, and its account. */
export async function findNetworkCard(em: Reader, networkCardId: string): Promise<NetworkCardOwner | null> {
  const [row] = await liveCardWith(em, { networkCardId });
  return row === undefined ? null : toOwner(row);
}

type FoundCard = { id: string; partner_id: string; status: CardStatus };

const toOwner = ({ id, partner_id, status }: FoundCard): NetworkCardOwner => ({
  cardId: id,
  partnerId: partner_id,
  mode: 'live',
  status,
});

const liveCardWith = readStatement(
  (db, { networkCardId }: { networkCardId: string }) =>
    db
      .selectFrom('card')
      .select(['id', 'partner_id', 'status'])
      .where('network_card_id', '=', networkCardId)
      // A literal, so that the planner can use the partial index.
      .where('mode', '=', sql.lit<'live'>('live')),
  { acrossTenants: 'network' },
);

interface LookedUp {
  network: string;
  networkTransactionId: string;
  networkCardId: string | null;
}

// Both in one round trip, since every transaction of the network passes here.
const lookUp = readStatement(
  (_, { network, networkTransactionId, networkCardId }: LookedUp) => sql<
    (FoundCard | { [Column in keyof FoundCard]: null }) & { has_messages: boolean }
  >`
    SELECT c.id, c.partner_id, c.status, EXISTS (SELECT FROM network_message
      WHERE network = ${network} AND kind = 'transaction' AND message_id = ${networkTransactionId}) AS has_messages
    FROM (VALUES (1)) one LEFT JOIN card c ON c.network_card_id = ${networkCardId} AND c.mode = 'live'`,
  { acrossTenants: 'network' },
);
