import { accountTime } from '../domain/account-clock.ts';
import { type FoldedPayment, isFolded, type PaymentSnapshot } from '../domain/payment.ts';
import { foldExpiry, foldHandMade } from '../issuers/simulated/fold.ts';
import type { Reader, Transactor } from '../platform/db/sql.ts';
import { type BookedPayment, bookOn, nameBooking, type PaymentTerms, toPayment } from './booking-rows.ts';
import { type AskedTerms, lockTerms, readTerms, type TermsRow } from './terms.ts';
import { leaveTerms, nothingBooked, toTerms } from './terms-left.ts';
import { writeBookings } from './write-bookings.ts';

/** A payment of a live card, as the network has it. */
export interface PaymentToBook {
  cardId: string;
  /** The network's id. */
  paymentId: string;
  /** Null: it has no such payment, or nothing was read. */
  snapshot: PaymentSnapshot | null;
  /** When the read began, in real time; null if nothing was read. */
  readAt: Date | null;
}

/**
 * Books what the network has (docs/decisions/payments.md), at any time, any number of times, in any order:
 * locks the cards in the order of their ids, reads what we have, and writes the difference. Where nothing
 * differs, nothing is written.
 * @returns what was booked of each, in order; null of one whose card we don't have
 * @throws ApiError `validation_failed` if a balance or a fee would leave the safe integers,
 * `idempotency_conflict` if a payment was booked on another card
 */
export async function bookPayments(
  tx: Transactor,
  payments: readonly PaymentToBook[],
  { ttlMs, lockWaitMs = null }: { ttlMs: number; lockWaitMs?: number | null },
): Promise<(BookedPayment | null)[]> {
  const rows = await lockTerms(tx, payments.map(toAsked), lockWaitMs);
  const booked = bookAll(payments, rows, ttlMs);
  await writeBookings(
    tx,
    booked.flatMap((one) => (one?.isChanged ? [one] : [])),
  );
  return booked;
}

/**
 * What {@link bookPayments} would book, without a lock and without writing: what is under way may differ for a
 * moment.
 */
export async function comparePayments(
  em: Reader,
  payments: readonly PaymentToBook[],
  ttlMs: number,
): Promise<(BookedPayment | null)[]> {
  return bookAll(payments, await readTerms(em, payments.map(toAsked)), ttlMs);
}

function bookAll(
  payments: readonly PaymentToBook[],
  rows: readonly TermsRow[],
  ttlMs: number,
): (BookedPayment | null)[] {
  const left = nothingBooked();
  return payments.map((payment, index) => {
    const row = rows[index];
    if (row === undefined || row.id === null) return null;
    const booked = bookOne(toTerms(toAsked(payment), row, left), payment, ttlMs);
    leaveTerms(left, payment.paymentId, booked);
    return booked;
  });
}

/** What a payment of a network's becomes on these terms. */
function bookOne(
  terms: PaymentTerms,
  { paymentId, snapshot, readAt }: PaymentToBook,
  ttlMs: number,
): BookedPayment {
  const { card, clock, payment } = terms;
  // Without an id of the network's, a payment of test mode has its authorization's.
  const as = nameBooking(terms, card.mode === 'test' ? null : paymentId);
  const folded = payment !== null && isFolded(payment.said) ? foldOurs(payment.said, terms, as.now) : null;
  const told = {
    // What a person has decided is booked without being told.
    snapshot: folded === null ? snapshot : { ...folded, requests: [], movements: [] },
    readAt: readAt === null ? null : accountTime(clock, readAt).toISOString(),
    ttlMs,
  };
  return bookOn(terms, toPayment(terms), told, as);
}

/**
 * The simulated network has no books of its own, so what a person says was cleared is taken from its hold
 * here, and so is all of it when its time is over. The last clearing ends the hold even if nothing was
 * bought.
 */
function foldOurs(
  before: FoldedPayment,
  { authorization, handMade, transactionIds }: PaymentTerms,
  now: string,
): FoldedPayment {
  let folded = before;
  for (const { id } of before.unreadable) {
    const made = handMade.get(id);
    if (made === undefined || transactionIds.has(id)) continue;
    if (made.means === 'purchase') folded = foldHandMade(folded, id, made.amountCents);
    else if (id === folded.early.unreadableId) folded = foldHandMade(folded, id, 0);
  }
  const isDecided = before.unreadable.every(({ id }) => handMade.has(id));
  const endsAt = authorization?.status === 'pending' ? authorization.expires_at : null;
  const isDue = endsAt !== null && Date.parse(endsAt) <= Date.parse(now);
  return isDecided && isDue ? foldExpiry(folded) : folded;
}

/** With the elements that may be booked. */
const toAsked = ({ cardId, paymentId, snapshot }: PaymentToBook): AskedTerms => ({
  card_id: cardId,
  payment_id: paymentId,
  elements: [...(snapshot?.movements ?? []), ...(snapshot?.unreadable ?? [])].map(({ id }) => id),
});
