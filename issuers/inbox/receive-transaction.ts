import { sql } from 'kysely';
import type {
  NetworkAuthorizationReport,
  NetworkTransaction,
  WhyKept,
} from '../../domain/network-transaction.ts';
import type { AuthorizationMessage } from '../../payments/message-record.ts';
import type { SettlementQueue } from '../../payments/settlement-queue.ts';
import { takeMessage } from '../../payments/take-message.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { readStatement } from '../../platform/db/sql.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { asAccount } from '../../platform/process/work-context.ts';
import type { CommandContext } from '../../requests/command-context.ts';
import { type AppliedMessage, bookMessage } from './book-messages.ts';
import { findMessage, type KnownMessage, keepMessage, type ReportedMessage } from './kept-messages.ts';
import {
  type FoundCard,
  isAuthorizationReport,
  type NetworkCardOwner,
  toAuthorizationMessage,
  toOwner,
  toSettlement,
  whyKept,
} from './reports.ts';

/**
 * What became of a report: the id of its transaction, of the authorization it ended, or of the message that
 * is kept for it.
 */
export type Received =
  | { transactionId: string }
  | { authorizationId: string }
  | { messageId: string; keptNow: WhyKept | null };

export interface ReceivingContext extends CommandContext {
  settlements: SettlementQueue;
  /** How long an authorization holds its amount at most. */
  authorizationTtlMs: number;
  /** Called after a kept transaction was booked. */
  eventsWritten(): void;
}

/**
 * Takes a transaction that the network reports: settles it, or keeps it if it can't be booked now, so that
 * the network need not repeat it. A repeated one gets the same result and changes nothing.
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
      ? await asAccount(card, () =>
          takeOrExplain(orm, toAuthorizationMessage(card, whole, report.network), card, authorizationTtlMs),
        )
      : await settleOrExplain(settlements, card, whole, report.network);
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
  network: string,
): Promise<{ transactionId: string } | WhyKept> {
  if (reported === null) return 'not_understood';
  if (card === null || isAuthorizationReport(reported)) return 'card_unknown';
  try {
    const { transaction } = await settlements.settle(toSettlement(card, reported, network));
    return { transactionId: transaction.id };
  } catch (error) {
    return whyKept(error, card);
  }
}

async function takeOrExplain(
  orm: Orm,
  message: AuthorizationMessage,
  card: NetworkCardOwner,
  ttlMs: number,
): Promise<{ transactionId: string } | { authorizationId: string } | WhyKept> {
  try {
    const taken = await transaction(orm, (tx) => takeMessage(tx, message, { ttlMs, lockWaitMs: null }));
    if (taken.transaction !== null) return { transactionId: taken.transaction.id };
    if (taken.authorization === null)
      throw new Error(`a ${message.type} was taken without its authorization`);
    return { authorizationId: taken.authorization.id };
  } catch (error) {
    return whyKept(error, card);
  }
}

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
