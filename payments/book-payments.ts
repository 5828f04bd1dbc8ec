import { accountTime } from '../domain/account-clock.ts';
import { type FoldedPayment, NOWHERE, type PaymentSnapshot } from '../domain/payment.ts';
import { foldedState, foldHandMade, foldMessage } from '../issuers/simulated/fold.ts';
import { newId } from '../platform/crypto/new-id.ts';
import type { Reader, Transactor } from '../platform/db/sql.ts';
import { type BookedPayment, bookingTime, bookOn, type PaymentTerms, toPayment } from './booking-rows.ts';
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
 * @throws ApiError `validation_failed` if a balance or a fee would leave the safe integers
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
  const { card, clock, authorization, payment } = terms;
  const authorizationId = authorization?.id ?? newId('auth');
  const now = bookingTime(terms, authorizationId);
  const folded = payment?.folded ? foldOurs(payment.folded, terms, now) : null;
  const ofFolded = folded && {
    paymentId,
    networkCardId: card.network_card_id ?? card.id,
    requests: [],
    // What a person has decided is booked without being told.
    movements: [],
    ...foldedState(folded),
  };
  return bookOn(
    terms,
    toPayment(terms),
    {
      snapshot: ofFolded ?? snapshot,
      readAt: readAt === null ? null : accountTime(clock, readAt).toISOString(),
      now,
      ttlMs,
    },
    // Without an id of the network's, a payment of test mode has its authorization's.
    { paymentId, networkPaymentId: card.mode === 'test' ? null : paymentId, authorizationId, folded },
  );
}

/**
 * The simulated network has no books of its own, so what a person says was cleared is taken from its hold here, and so
 * is all of it when its time is over. The last clearing ends the hold even if nothing was bought.
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
    else if (id === folded.lastUnreadableId) folded = foldHandMade(folded, id, 0);
  }
  const isDecided = before.unreadable.every(({ id }) => handMade.has(id));
  const endsAt = authorization?.status === 'pending' ? authorization.expires_at : null;
  const isDue = endsAt !== null && Date.parse(endsAt) <= Date.parse(now);
  return isDecided && isDue ? foldMessage(folded, { ...EXPIRY, at: now }) : folded;
}

const EXPIRY = {
  id: 'expiry',
  type: 'expiry',
  amountCents: null,
  isFinal: true,
  reason: null,
  merchant: NOWHERE,
  refunds: null,
} as const;

/** With the elements that may be booked. */
const toAsked = ({ cardId, paymentId, snapshot }: PaymentToBook): AskedTerms => ({
  card_id: cardId,
  payment_id: paymentId,
  elements: [...(snapshot?.movements ?? []), ...(snapshot?.unreadable ?? [])].map(({ id }) => id),
});
