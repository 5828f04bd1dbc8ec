import { isDeepStrictEqual } from 'node:util';
import { sql } from 'kysely';
import { ApiError } from '../../domain/api-error.ts';
import type { NetworkReport, NetworkRequest } from '../../domain/simulated-network.ts';
import type { MessageQueue } from '../../payments/message-queue.ts';
import type { MessageAnswer } from '../../payments/tables.ts';
import {
  answerOf,
  type MessageOutcome,
  type MessageToTake,
  takeMessages,
} from '../../payments/take-messages.ts';
import { usedOtherwise } from '../../payments/terms-left.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { readStatement, type Transactor, writeStatement } from '../../platform/db/sql.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { asAccount } from '../../platform/process/work-context.ts';
import type { MessageResult } from '../card-network.ts';
import { MAX_LOCK_WAIT_MS } from './book-payment.ts';
import { findPaymentCard, type NetworkCardOwner } from './find-card.ts';
import { endObject, goOnWithObject, keepPayment, type NotBooked, type TakenObject } from './inbox.ts';
import type { InboxRoom } from './room.ts';
import type { WaitingElement, WhyWaiting } from './tables.ts';

// The simulated network has no books of its own: each of its messages is recorded, once, and folded into its
// payment when it is booked.

const MAX_TOGETHER = 100;

/** The network's id of the payment that a message is part of. */
const paymentOf = (said: NetworkReport | NetworkRequest): string =>
  ('networkAuthorizationId' in said ? said.networkAuthorizationId : null) ??
  ('networkPaymentId' in said ? said.networkPaymentId : null) ??
  said.networkTransactionId;

/** A message as it is taken. */
export function toMessage<Said extends NetworkReport | NetworkRequest>(
  { cardId, partnerId, mode }: Pick<NetworkCardOwner, 'cardId' | 'partnerId' | 'mode'>,
  said: Said,
  ttlMs: number,
): MessageToTake & { recorded: { networkCardId: string; said: Said } } {
  const { networkTransactionId: id, type, amountCents, currency, merchant, networkCardId } = said;
  const isFinal = 'final' in said ? said.final : true;
  const isUnreadable = 'isReadable' in said && !said.isReadable;
  const message = isUnreadable
    ? {
        id,
        type: 'unreadable' as const,
        amountCents: null,
        isFinal,
        merchant,
        written: { what: type, currency, amount: amountCents },
      }
    : { id, type: type as MessageToTake['simulated']['message']['type'], amountCents, isFinal, merchant };
  return {
    partnerId,
    mode,
    cardId,
    simulated: {
      message,
      networkPaymentId: paymentOf(said),
      ttlMs,
      forced: 'forced' in said && said.forced,
    },
    recorded: { networkCardId, said },
  };
}

export interface SimulatedContext {
  orm: Orm;
  messages: MessageQueue;
  room: InboxRoom;
  /** How long an authorization holds its amount at most. */
  authorizationTtlMs: number;
}

/**
 * Takes what the simulated network reports. What can't be booked now waits, so that the network need not
 * repeat it.
 * @throws ApiError `idempotency_conflict` if its id was used for something else, `unavailable` if too much waits
 */
export async function receiveReport(
  { orm, messages, room, authorizationTtlMs }: SimulatedContext,
  said: NetworkReport,
  onCard: (card: NetworkCardOwner) => void,
): Promise<MessageResult> {
  const card = await findPaymentCard(orm.em.fork(), paymentOf(said), said.networkCardId);
  if (card !== null) onCard(card);
  if (card === null || card.unusable !== null)
    return keep({ orm, room }, said, card?.unusable ?? 'card_unknown');
  const outcome = await messages.take(toMessage(card, said, authorizationTtlMs));
  const reason = whyNotTaken(outcome);
  return reason === null ? resultOf(said, answerOfOutcome(outcome)) : keep({ orm, room }, said, reason);
}

/** @throws ApiError what the network can't mean */
function whyNotTaken(outcome: MessageOutcome): WhyWaiting | null {
  if ('waits' in outcome) return outcome.waits;
  if (!('refused' in outcome)) return null;
  const { refused } = outcome;
  if (refused.code === 'validation_failed') return 'unbookable';
  if (refused.code === 'invalid_state') return 'card_not_issued';
  if (refused.code === 'card_not_found') return 'card_unknown';
  throw refused;
}

function answerOfOutcome(outcome: MessageOutcome): MessageAnswer {
  if ('answered' in outcome) return outcome.answered;
  if (!('taken' in outcome)) throw new Error('a message was not taken');
  return answerOf(outcome.taken);
}

function resultOf(said: NetworkReport, { transactionId, authorizationId }: MessageAnswer): MessageResult {
  if (!said.isReadable) return { status: 'kept', messageId: said.networkTransactionId };
  if (transactionId !== null) return { status: 'booked', transactionId };
  // A person has dismissed it.
  return authorizationId === null ? { status: 'noted' } : { status: 'applied', authorizationId };
}

/** Records a message that can't be booked now; a worker tries it again. */
async function keep(
  { orm, room }: Pick<SimulatedContext, 'orm' | 'room'>,
  said: NetworkReport,
  reason: WhyWaiting,
): Promise<MessageResult> {
  const { networkTransactionId: id, networkCardId } = said;
  const hasRoom = await room.has(0);
  return transaction(orm, async (tx) => {
    const paymentId = paymentOf(said);
    const [known] = await record(tx, { id, paymentId, networkCardId, said: JSON.stringify(said) });
    if (known === undefined) throw new Error('a message was not recorded');
    if (!isDeepStrictEqual(known.said, said)) throw usedOtherwise('message');
    if (known.answer !== null) return resultOf(said, known.answer);
    if (known.is_new) {
      await keepPayment(tx, { id: paymentId, networkCardId, reason, element: toElement(said), hasRoom });
      room.take(0);
    }
    return { status: 'kept', messageId: id };
  });
}

const record = writeStatement(
  (_, values: { id: string; paymentId: string; networkCardId: string; said: string }) => sql<{
    said: object;
    answer: MessageAnswer | null;
    is_new: boolean;
  }>`
    INSERT INTO simulated_message AS m (id, payment_id, network_card_id, said)
    VALUES (${values.id}, ${values.paymentId}, ${values.networkCardId}, ${values.said}::jsonb)
    ON CONFLICT (id) DO UPDATE SET answer = m.answer RETURNING m.said, m.answer, m.xmax = 0 AS is_new`,
);

const toElement = ({
  networkTransactionId: id,
  type,
  amountCents,
  currency,
}: NetworkReport): WaitingElement => ({
  id,
  what: type,
  amount: amountCents,
  currency,
});

/**
 * Books what waits of a payment, in the order recorded and so many at a time, and ends its place in the inbox with
 * the last of it.
 * @returns why something still waits; null if nothing does; and whether anything was booked
 */
export async function takeWaiting(
  { orm, authorizationTtlMs }: Pick<SimulatedContext, 'orm' | 'authorizationTtlMs'>,
  taken: TakenObject,
): Promise<{ waits: NotBooked | null; isBooked: boolean }> {
  const { id: paymentId } = taken;
  const recorded = await waiting(orm.em.fork(), { paymentId, limit: MAX_TOGETHER });
  const [first] = recorded;
  if (first === undefined) {
    await transaction(orm, (tx) => endObject(tx, taken));
    return { waits: null, isBooked: false };
  }
  const { networkCardId } = first.said;
  const elements = recorded.map(({ said }) => toElement(said));
  const not = (reason: WhyWaiting): NotBooked => ({ reason, networkCardId, elements });
  const card = await findPaymentCard(orm.em.fork(), paymentId, networkCardId);
  if (card === null || card.unusable !== null)
    return { waits: not(card?.unusable ?? 'card_unknown'), isBooked: false };
  return asAccount(card, () =>
    transaction(orm, async (tx) => {
      const messages = recorded.map(({ said }) => toMessage(card, said, authorizationTtlMs));
      const outcomes = await takeMessages(tx, messages, MAX_LOCK_WAIT_MS);
      const [reason] = outcomes.map(whyNotTaken).filter((reason) => reason !== null);
      const isAll = recorded.length < MAX_TOGETHER;
      if (reason === undefined) await (isAll ? endObject(tx, taken) : goOnWithObject(tx, taken));
      return {
        waits: reason === undefined ? null : not(reason),
        isBooked: outcomes.some((it) => 'taken' in it),
      };
    }),
  );
}

// What a person has decided is not taken any more.
const waiting = readStatement(
  (_, { paymentId, limit }: { paymentId: string; limit: number }) => sql<{ said: NetworkReport }>`
    SELECT m.said FROM simulated_message m
    WHERE m.payment_id = ${paymentId} AND m.answer IS NULL
      AND NOT EXISTS (SELECT FROM payment_element e WHERE e.id = m.id AND e.approved)
    ORDER BY m.seq LIMIT ${limit}`,
);

/**
 * Takes what the network asks, or an operator says for it.
 * @throws ApiError if it can't be decided or booked now
 */
export async function takeSaid(
  tx: Transactor,
  card: Pick<NetworkCardOwner, 'cardId' | 'partnerId' | 'mode'>,
  said: NetworkReport | NetworkRequest,
  { ttlMs, lockWaitMs }: { ttlMs: number; lockWaitMs: number | null },
): Promise<{ answer: MessageAnswer; isNew: boolean }> {
  const [outcome] = await takeMessages(tx, [toMessage(card, said, ttlMs)], lockWaitMs);
  if (outcome === undefined || 'waits' in outcome)
    throw new ApiError('authorization_not_found', {
      message: 'We do not know the authorization: send its request first.',
    });
  if ('refused' in outcome) throw outcome.refused;
  return { answer: answerOfOutcome(outcome), isNew: 'taken' in outcome };
}
