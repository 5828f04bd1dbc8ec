import { ApiError } from '../domain/api-error.ts';
import { MAX_REQUESTS } from '../domain/authorization.ts';
import type { PaymentMerchant } from '../domain/payment.ts';
import { requireUsable } from '../domain/transaction.ts';
import type { SimulatedMessage } from '../issuers/simulated/fold.ts';
import type { KeyedRequest } from '../requests/claim.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { type KeyedResponse, respondOnce } from '../requests/respond-once.ts';
import { type AuthorizationRow, presentAuthorization } from './authorization-resource.ts';
import { type SimulatedTerms, takeSimulated } from './take-simulated.ts';
import { lockTestAuthorization, lockTestCard } from './terms.ts';
import { presentTransaction } from './transaction-resource.ts';
import { respondWithBooking } from './write-bookings.ts';

// What a partner has a merchant do with a test card: one transaction of three round trips each.

/** What is simulated. */
export interface SimulatedAsked {
  type: SimulatedMessage['type'];
  /** Undefined for all that is left. */
  amountCents?: number | undefined;
  /** Whether a clearing is the last one. */
  isFinal?: boolean;
  merchant?: PaymentMerchant;
  /** What names the message. */
  messageId: string;
  /** How long an authorization holds its amount at most. */
  ttlMs: number;
}

/**
 * Asks for an authorization on a test card, or takes money without one.
 * @throws ApiError `card_not_found`, `idempotency_conflict`, `validation_failed`; without an Idempotency-Key
 * also `invalid_state`, which is otherwise a stored response
 */
export function simulateOnCard(
  context: CommandContext,
  request: KeyedRequest,
  asked: SimulatedAsked & { merchant: PaymentMerchant },
): Promise<KeyedResponse> {
  return respondOnce(context, request, async (tx) => {
    const command = { tx, ring: context.ring };
    const terms = await lockTestCard(command, request, asked.type === 'authorization');
    if ('replayed' in terms) return terms;
    requireUsable(terms.card.status);
    const booked = take(terms, asked, asked.merchant);
    return respondWithBooking(command, request, booked, { status: 201, body: bodyOf(booked, asked.type) });
  });
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
  asked: SimulatedAsked,
): Promise<KeyedResponse> {
  return respondOnce(context, request, async (tx) => {
    const command = { tx, ring: context.ring };
    const decides = asked.type === 'increment';
    const terms = await lockTestAuthorization(command, request, authorizationId, decides);
    if ('replayed' in terms) return terms;
    const { authorization } = terms;
    const amountCents = requirePossible(authorization, asked);
    const booked = take(terms, { ...asked, amountCents }, merchantOf(authorization));
    const status = asked.type === 'clearing' ? 201 : 200;
    return respondWithBooking(command, request, booked, { status, body: bodyOf(booked, asked.type) });
  });
}

function take(terms: SimulatedTerms, asked: SimulatedAsked, merchant: PaymentMerchant) {
  const { type, amountCents = null, isFinal = true, messageId: id, ttlMs } = asked;
  const message = { id, type, amountCents, isFinal, merchant, refunds: null };
  return takeSimulated(terms, { message, networkPaymentId: null, ttlMs });
}

function bodyOf(booked: ReturnType<typeof takeSimulated>, type: SimulatedMessage['type']): string {
  const { authorization, transactions } = booked;
  const resource =
    type === 'clearing'
      ? transactions[0] && presentTransaction(transactions[0])
      : authorization && presentAuthorization(authorization);
  if (!resource) throw new Error(`a simulated ${type} is not booked`);
  return JSON.stringify(resource);
}

/** What is asked for in cents, if the authorization allows it. @throws ApiError */
function requirePossible(
  { status, amount_cents, held_cents, settled_cents, requests }: AuthorizationRow,
  { type, amountCents }: SimulatedAsked,
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

const merchantOf = (row: AuthorizationRow): PaymentMerchant => ({
  name: row.merchant_name,
  categoryCode: row.merchant_category_code,
  city: row.merchant_city,
  country: row.merchant_country,
});
