import { sql } from 'kysely';
import { ApiError } from '../../domain/api-error.ts';
import { Refusal, unknownId } from '../../domain/refusal.ts';
import type { TransactionType } from '../../domain/transaction.ts';
import { settleTransactions } from '../../payments/settle-transactions.ts';
import type { TransactionResource } from '../../payments/transaction-resource.ts';
import { readStatement, type Transactor } from '../../platform/db/sql.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { type OperatorContext, recordAudit } from '../../requests/operator-context.ts';
import { endMessage, type LockedMessage, lockMessage } from './kept-messages.ts';
import { findNetworkCard, type NetworkCardOwner, toSettlement } from './reports.ts';

/** What an operator gives in place of what the network reported; undefined leaves that. */
export interface BookedByHand {
  cardId: string | undefined;
  type: TransactionType | undefined;
  amountCents: number | undefined;
  reason: string;
}

/**
 * Books a kept transaction on an operator's word: the transaction, the end of its message and the audit entry
 * are one transaction. On a card that failed by our record it is charged to the partner's balance, as on a
 * blocked card. If another transaction has its id at the network, it gets the message's id instead. One that
 * was dismissed can still be booked.
 * @throws Refusal if it is booked already, something is missing, or it can't be booked
 */
export function bookByHand(
  { orm, ring, actor }: OperatorContext,
  messageId: string,
  given: BookedByHand,
): Promise<TransactionResource> {
  return transaction(orm, async (tx) => {
    const message = await lockKnown(tx, ring, messageId);
    if (message.status === 'booked') throw alreadyBooked(message);
    const card = await findCard(tx, message, given.cardId);
    const reported = toTransaction(message, given);
    const settlement = { ...toSettlement(card, reported, message.network), byHand: true };
    let [outcome] = await settleTransactions(tx, [settlement]).catch(asRefusal);
    if (outcome instanceof ApiError && outcome.code === 'idempotency_conflict') {
      [outcome] = await settleTransactions(tx, [{ ...settlement, networkTransactionId: messageId }]).catch(
        asRefusal,
      );
    }
    if (outcome === undefined || outcome instanceof ApiError) return asRefusal(outcome);
    await endMessage(tx, messageId, outcome.transaction.id);
    recordAudit(tx, {
      actor,
      action: 'transaction.book',
      subject: outcome.transaction.id,
      detail: {
        messageId,
        networkTransactionId: reported.networkTransactionId,
        partnerId: card.partnerId,
        cardId: card.cardId,
        type: reported.type,
        amountCents: reported.amountCents,
        wasDismissed: message.status === 'dismissed',
        reason: given.reason,
      },
    });
    return outcome.transaction;
  });
}

/**
 * Records an operator's decision that a kept transaction is not to be booked.
 * @throws Refusal if it is booked or dismissed already
 */
export function dismissMessage(
  { orm, ring, actor }: OperatorContext,
  messageId: string,
  reason: string,
): Promise<void> {
  return transaction(orm, async (tx) => {
    const message = await lockKnown(tx, ring, messageId);
    if (message.status === 'booked') throw alreadyBooked(message);
    if (message.status === 'dismissed')
      throw new Refusal(
        `${messageId} was dismissed before: see "operator audit list --subject ${messageId}".`,
      );
    await endMessage(tx, messageId, null);
    const { networkTransactionId, networkCardId } = message.reported;
    const detail = { networkTransactionId, networkCardId, whyKept: message.reason, reason };
    recordAudit(tx, { actor, action: 'transaction.dismiss', subject: messageId, detail });
  });
}

async function lockKnown(
  tx: Transactor,
  ring: OperatorContext['ring'],
  messageId: string,
): Promise<LockedMessage> {
  const message = await lockMessage(tx, ring, messageId);
  if (message === null) throw unknownId('nmsg', messageId, 'run "operator transaction kept"');
  return message;
}

const alreadyBooked = ({ id, transaction_id }: LockedMessage): Refusal =>
  new Refusal(`${id} is already booked as ${transaction_id}; nothing was changed.`);

/** The card to book on: the one with the network's id, or the one given. */
async function findCard(
  tx: Transactor,
  { id, network_card_id: networkCardId }: LockedMessage,
  cardId: string | undefined,
): Promise<NetworkCardOwner> {
  const known = networkCardId === null ? null : await findNetworkCard(tx, networkCardId);
  if (cardId === undefined) {
    if (known !== null) return known;
    throw new Refusal(
      `No card of ours has the network's card id of ${id}. Find out from the network whose card it is, and give it with --card.`,
    );
  }
  if (known !== null && known.cardId !== cardId)
    throw new Refusal(`The network's card id of ${id} belongs to ${known.cardId}: leave out --card.`);
  const [given] = await liveCard(tx, { cardId });
  if (given === undefined)
    throw unknownId('card', cardId, 'it must be a live card; run "operator card list"');
  return { ...given, mode: 'live' };
}

const liveCard = readStatement(
  (db, { cardId }: { cardId: string }) =>
    db
      .selectFrom('card')
      .select(['id as cardId', 'partner_id as partnerId', 'status'])
      .where('id', '=', cardId)
      .where('mode', '=', sql.lit<'live'>('live')),
  { acrossTenants: 'operator' },
);

/** What the network reported, with what the operator gives in its place. */
function toTransaction({ reported }: LockedMessage, { type, amountCents }: BookedByHand) {
  const { networkCardId, networkTransactionId, networkPaymentId, currency, forced, merchant } = reported;
  const isUsd = currency === 'USD';
  const booked = {
    type: type ?? reported.type,
    amountCents: amountCents ?? (isUsd ? reported.amountCents : null),
  };
  if (booked.type === null)
    throw new Refusal('Its type is not one that we know: give the right one with --type.');
  if (booked.amountCents === null)
    throw new Refusal('Its amount is not a number of US cents that we can book: give it with --amount.');
  return {
    networkCardId: networkCardId ?? '',
    networkTransactionId,
    type: booked.type,
    amountCents: booked.amountCents,
    currency: 'USD' as const,
    forced,
    networkPaymentId,
    merchant,
  };
}

/** @throws the reason why a settlement can't be booked, as a Refusal */
function asRefusal(error: unknown): never {
  if (error instanceof ApiError) throw new Refusal(`Nothing was booked. ${error.message}`);
  throw error;
}
