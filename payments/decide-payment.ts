import { decisionTime } from '../cards/applied-controls.ts';
import { ApiError } from '../domain/api-error.ts';
import { type DeclineReason, decideDecline } from '../domain/authorization.ts';
import { refusalByControls } from '../domain/spending-controls.ts';
import { requireUsable } from '../domain/transaction.ts';
import { newId } from '../platform/crypto/new-id.ts';
import type { Transactor } from '../platform/db/sql.ts';
import { type BookedPayment, bookingTime, toMoney, toPayment, toRows } from './booking-rows.ts';
import { type Asked, decideRequest } from './decision-rules.ts';
import { bookPayment } from './rules.ts';
import { lockPaymentTerms } from './terms.ts';
import { writeBookings } from './write-bookings.ts';

/** A request that an issuer asks us about: it waits for the answer. */
export interface IssuerRequest extends Asked {
  cardId: string;
  /** The network's id of the card, which the card must still have. */
  networkCardId: string;
  /** The network's id of the payment. */
  paymentId: string;
}

/**
 * Decides a request of an issuer's in the caller's transaction, which takes three round trips with BEGIN and
 * COMMIT. Asked again, or told already, it has the same answer. A request for nothing is decided by status,
 * category and country, and leaves no record.
 * @param limits.ttlMs how long an authorization holds its amount at most
 * @param limits.lockWaitMs how long to wait for the card's lock before PostgreSQL's error
 * @returns why not; null if it is approved
 * @throws ApiError `card_not_found`, `invalid_state` if the card was not issued, `idempotency_conflict` if an id
 * was used for something else, `validation_failed` if a fee would be too large
 */
export async function decidePayment(
  tx: Transactor,
  { cardId, networkCardId, paymentId, ...asked }: IssuerRequest,
  { ttlMs, lockWaitMs }: { ttlMs: number; lockWaitMs: number | null },
): Promise<{ reason: DeclineReason | null; booked: BookedPayment | null }> {
  const terms = await lockPaymentTerms(tx, { cardId, paymentId, messageId: null, lockWaitMs });
  if (terms === null || terms.card.network_card_id !== networkCardId) throw new ApiError('card_not_found');
  const { card, balance, clock, controls, authorization, askedAt } = terms;
  requireUsable(card.status);
  const { amountCents } = asked;
  const merchant = terms.payment?.requests[0]?.merchant ?? asked.merchant;
  const refusedByControls = refusalByControls(controls, {
    amountCents,
    wholeCents: Number(authorization?.amount_cents ?? 0) + amountCents,
    categoryCode: merchant.categoryCode,
    country: merchant.country,
  });
  if (amountCents === 0) {
    const reason = decideDecline({ status: card.status, availableCents: 0 }, 0, refusedByControls);
    return { reason, booked: null };
  }
  const authorizationId = authorization?.id ?? newId('auth', decisionTime(controls, askedAt, clock));
  const now = bookingTime(terms, authorizationId);
  const { reason, payment } = decideRequest(toPayment(terms), asked, {
    card: { status: card.status, ...balance },
    holdsCents: amountCents,
    refusedByControls,
    now,
  });
  const booking = bookPayment(payment, toMoney(terms), {
    snapshot: null,
    readAt: null,
    handMade: terms.handMade,
    // What a person says is booked as soon as it counts.
    booked: new Set(terms.handMade.keys()),
    now,
    ttlMs,
  });
  const booked = toRows(terms, booking, {
    paymentId,
    networkPaymentId: paymentId,
    authorizationId,
    folded: null,
    refundedIds: new Map(),
  });
  if (booked.isChanged) await writeBookings(tx, [booked]);
  return { reason, booked };
}
