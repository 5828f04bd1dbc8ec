import { ApiError } from '../domain/api-error.ts';
import { type DeclineReason, decideDecline } from '../domain/authorization.ts';
import type { Asked, PaymentMerchant } from '../domain/payment.ts';
import { refusalByControls } from '../domain/spending-controls.ts';
import { requireUsable } from '../domain/transaction.ts';
import type { RequestMessage } from '../issuers/card-network.ts';
import type { Transactor } from '../platform/db/sql.ts';
import { type BookedPayment, bookOn, nameBooking, type PaymentTerms, toPayment } from './booking-rows.ts';
import { type Decided, decideRequest } from './decision-rules.ts';
import { lockDecisionTerms } from './terms.ts';
import { toTerms } from './terms-left.ts';
import { writeBookings } from './write-bookings.ts';

/** A request that an issuer asks us about, on our card: it waits for the answer. */
type IssuerRequest = Omit<RequestMessage, 'type'> & { cardId: string };

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
  const about = { card_id: cardId, payment_id: paymentId };
  const [row] = await lockDecisionTerms(tx, about, lockWaitMs);
  const terms = toTerms(about, row);
  const { card } = terms;
  if (card.network_card_id !== networkCardId) throw new ApiError('card_not_found');
  requireUsable(card.status);
  if (asked.amountCents === 0) {
    const merchant = terms.payment?.requests[0]?.merchant ?? asked.merchant;
    return { reason: decideNothing(terms, merchant), booked: null };
  }
  const as = nameBooking(terms, paymentId);
  const { reason, payment } = decideAsked(terms, asked, { holdsCents: asked.amountCents, now: as.now });
  const booked = bookOn(terms, payment, { snapshot: null, readAt: null, ttlMs }, as);
  if (booked.isChanged) await writeBookings(tx, [booked]);
  return { reason, booked };
}

/**
 * Decides a request for money.
 * @param holdsCents what it would hold more
 * @throws ApiError `idempotency_conflict` if its key asked for another amount before
 */
export function decideAsked(
  terms: PaymentTerms,
  asked: Asked,
  { holdsCents, now }: { holdsCents: number; now: string },
): Decided {
  const { card, balance, controls, authorization } = terms;
  const { categoryCode, country } = terms.payment?.requests[0]?.merchant ?? asked.merchant;
  const refusedByControls = refusalByControls(controls, {
    amountCents: holdsCents,
    wholeCents: Number(authorization?.amount_cents ?? 0) + asked.amountCents,
    categoryCode,
    country,
  });
  const on = { card: { status: card.status, ...balance }, holdsCents, refusedByControls, now };
  return decideRequest(toPayment(terms), asked, on);
}

/** A request for 0 cents asks whether the card can be used. */
export function decideNothing(
  { card, controls }: PaymentTerms,
  { categoryCode, country }: PaymentMerchant,
): DeclineReason | null {
  const asked = { amountCents: 0, wholeCents: 0, categoryCode, country };
  return decideDecline({ status: card.status, availableCents: 0 }, 0, refusalByControls(controls, asked));
}
