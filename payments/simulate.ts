import { ApiError } from '../domain/api-error.ts';
import { MAX_REQUESTS } from '../domain/authorization.ts';
import { isId } from '../domain/ids.ts';
import type { Tenant } from '../domain/mode.ts';
import { requireUsable } from '../domain/transaction.ts';
import type { SimulatedMessage } from '../issuers/simulated/fold.ts';
import type { KeyedRequest } from '../requests/claim.ts';
import type { CommandContext, OpenCommand } from '../requests/command-context.ts';
import { type KeyedResponse, readReplay, respondOnce } from '../requests/respond-once.ts';
import { type AuthorizationRow, presentAuthorization } from './authorization-resource.ts';
import type { PaymentTerms } from './booking-rows.ts';
import type { MessageQueue } from './message-queue.ts';
import { type Simulated, takeSimulated } from './take-simulated.ts';
import { lockTestTerms, readRefundTerms } from './terms.ts';
import { toTerms } from './terms-left.ts';
import { presentTransaction, type TransactionResource } from './transaction-resource.ts';
import { merchantOf } from './transaction-rows.ts';
import { respondWithBooking } from './write-bookings.ts';

// What a partner has a merchant do with a test card: one transaction of three round trips each.

/**
 * Simulates a transaction in a database transaction that others may share, without an Idempotency-Key.
 * @throws ApiError `card_not_found`, `invalid_state`, `validation_failed`
 */
export async function simulateTogether(
  messages: MessageQueue,
  about: Tenant & { cardId: string },
  simulated: Simulated,
): Promise<TransactionResource> {
  const outcome = await messages.take({ ...about, simulated, recorded: null });
  if ('refused' in outcome) throw outcome.refused;
  const [row] = 'taken' in outcome ? outcome.taken.transactions : [];
  if (row === undefined) throw new Error('a transaction was not simulated');
  return presentTransaction(row);
}

/**
 * Simulates what takes place on a test card: a request for money, or a transaction.
 * @throws ApiError `card_not_found`, `idempotency_conflict`, `validation_failed`; without an Idempotency-Key
 * also `invalid_state`, which is otherwise a stored response
 */
export function simulateOnCard(
  context: CommandContext,
  request: KeyedRequest,
  simulated: Simulated,
): Promise<KeyedResponse> {
  const { type } = simulated.message;
  const { refundedTransactionId } = simulated;
  return respondOnce(context, request, async (tx) => {
    const command = { tx, ring: context.ring };
    const terms = await lock(command, request, null, { type, refundedTransactionId });
    if ('replayed' in terms) return terms;
    requireUsable(terms.card.status, simulated.isSimulation);
    const booked = takeSimulated(terms, simulated);
    return respondWithBooking(command, request, booked, { status: 201, body: bodyOf(booked, type) });
  });
}

/** What follows an authorization. */
export interface FollowingAsked {
  type: 'increment' | 'clearing' | 'reversal' | 'expiry';
  /** Undefined for all that is left. */
  amountCents?: number | undefined;
  /** Whether a clearing is the last one. */
  isFinal?: boolean;
  /** What names the message. */
  messageId: string;
  /** How long an authorization holds its amount at most. */
  ttlMs: number;
}

/**
 * Simulates what follows an authorization of a test card.
 * @throws ApiError `authorization_not_found`, and as {@link simulateOnCard}; `validation_failed` for more
 *   than is left, and for a clearing without an amount if nothing is left
 */
export function simulateOnAuthorization(
  context: CommandContext,
  request: KeyedRequest,
  authorizationId: string,
  asked: FollowingAsked,
): Promise<KeyedResponse> {
  const { type, isFinal = true, messageId: id, ttlMs } = asked;
  return respondOnce(context, request, async (tx) => {
    const command = { tx, ring: context.ring };
    if (!isId('auth', authorizationId)) throw new ApiError('authorization_not_found');
    const terms = await lock(command, request, authorizationId, { type });
    if ('replayed' in terms) return terms;
    const { authorization } = terms;
    if (authorization === null) throw new ApiError('authorization_not_found');
    const amountCents = requirePossible(authorization, asked) ?? null;
    const message = { id, type, amountCents, isFinal, merchant: merchantOf(authorization) };
    const booked = takeSimulated(terms, { message, networkPaymentId: null, ttlMs });
    const status = type === 'clearing' ? 201 : 200;
    return respondWithBooking(command, request, booked, { status, body: bodyOf(booked, type) });
  });
}

/**
 * Locks the card that a request of test mode is about, and looks the request's key up.
 * @returns the stored response if the key has one
 * @throws ApiError `card_not_found`, or `authorization_not_found` if it is about one; `idempotency_conflict`
 */
async function lock(
  { tx, ring }: OpenCommand,
  request: KeyedRequest,
  authorizationId: string | null,
  {
    type,
    refundedTransactionId,
  }: { type: SimulatedMessage['type']; refundedTransactionId?: string | undefined },
): Promise<PaymentTerms | KeyedResponse> {
  const { partnerId, key } = request;
  const cardId = authorizationId === null ? request.cardId : null;
  const decides = ['authorization', 'increment', 'purchase'].includes(type);
  const about = { partnerId, key, cardId, authorizationId, decides, askedAt: new Date() };
  const [row] = await lockTestTerms(tx, about);
  if (row === undefined || row.id === null)
    throw new ApiError(authorizationId === null ? 'card_not_found' : 'authorization_not_found');
  const replay = readReplay(ring, request, row);
  if (replay !== null) return replay;
  const asked = { cardId: row.id, refundedId: refundedTransactionId ?? null };
  const [refund = null] = type === 'refund' ? await readRefundTerms(tx, asked) : [];
  const named = { card_id: row.id, payment_id: null, refunded_id: refundedTransactionId };
  return toTerms(named, { ...row, refund });
}

function bodyOf(booked: ReturnType<typeof takeSimulated>, type: SimulatedMessage['type']): string {
  const { authorization, transactions } = booked;
  const isOfAuthorization = ['authorization', 'increment', 'reversal', 'expiry'].includes(type);
  const resource = isOfAuthorization
    ? authorization && presentAuthorization(authorization)
    : transactions[0] && presentTransaction(transactions[0]);
  if (!resource) throw new Error(`a simulated ${type} is not booked`);
  return JSON.stringify(resource);
}

/** What is asked for in cents, if the authorization allows it. @throws ApiError */
function requirePossible(
  { status, amount_cents, held_cents, settled_cents, requests }: AuthorizationRow,
  { type, amountCents }: FollowingAsked,
): number | undefined {
  if (type === 'clearing') {
    if (status === 'declined') {
      throw new ApiError('invalid_state', {
        message: 'The authorization was declined. A declined one cannot be cleared.',
      });
    }
    const leftCents = Math.max(0, Number(amount_cents) - Number(settled_cents));
    if ((amountCents ?? leftCents) === 0)
      throw ApiError.ofField('amount', 'amount is required, because nothing is left to clear');
    return amountCents ?? leftCents;
  }
  if (status !== 'pending') {
    throw new ApiError('invalid_state', {
      message: `The authorization is ${status}. Only a pending one can be incremented, reversed or expired.`,
    });
  }
  if (type === 'increment' && requests.length >= MAX_REQUESTS) {
    throw new ApiError('invalid_state', {
      message: `The authorization has had ${MAX_REQUESTS} requests, which is as many as it can have.`,
    });
  }
  const leftCents = Number(held_cents);
  if (type === 'reversal' && amountCents !== undefined && amountCents > leftCents)
    throw ApiError.ofField('amount', `amount must be at most the ${leftCents} cents that are left`);
  return amountCents;
}
