import { sql } from 'kysely';
import type { CardRow } from '../cards/resource.ts';
import { accountTime } from '../domain/account-clock.ts';
import type { FoldedPayment, PaymentSnapshot } from '../domain/payment.ts';
import { foldedState, foldHandMade } from '../issuers/simulated/fold.ts';
import { newId } from '../platform/crypto/new-id.ts';
import { AUTHORIZATION_COLUMNS, CARD_COLUMNS, of, PAYMENT_COLUMNS } from '../platform/db/columns.ts';
import { columnList, type Reader, readStatement, type Transactor } from '../platform/db/sql.ts';
import { type BookedPayment, bookingTime, bookOn, type PaymentTerms, toPayment } from './booking-rows.ts';
import { lockCards, type TermsRead, usedOtherwise } from './terms.ts';
import { leaveTerms, nothingBooked, termsLeft } from './terms-left.ts';
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
 * @throws ApiError `validation_failed` if a balance or a fee would leave the safe integers, `idempotency_conflict` if a
 * payment was booked on another card
 */
export async function bookPayments(
  tx: Transactor,
  payments: readonly PaymentToBook[],
  { ttlMs, lockWaitMs = null }: { ttlMs: number; lockWaitMs?: number | null },
): Promise<(BookedPayment | null)[]> {
  const cardIds = [...new Set(payments.map(({ cardId }) => cardId))];
  const cards = await lockCards(tx, { cardIds, testPartnerIds: [], lockWaitMs });
  const booked = bookAll(payments, cards, await readPayments(tx, toAsked(payments)), ttlMs);
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
  const cards = await readCards(em, { cardIds: [...new Set(payments.map(({ cardId }) => cardId))] });
  return bookAll(payments, cards, await readPayments(em, toAsked(payments)), ttlMs);
}

function bookAll(
  payments: readonly PaymentToBook[],
  cards: readonly CardRow[],
  rows: readonly ReadRow[],
  ttlMs: number,
): (BookedPayment | null)[] {
  const byId = new Map(cards.map((card) => [card.id, card]));
  const left = nothingBooked();
  return payments.map((payment, index) => {
    const card = byId.get(payment.cardId);
    const row = rows[index];
    if (card === undefined || row === undefined) return null;
    // Since its card was found, that card's id at the network may have gone to the one that it is booked on.
    if (row.payment_card_id !== null && row.payment_card_id !== card.id) throw usedOtherwise('payment');
    const { paymentId } = payment;
    // Issuers' cards are live, whose clock is the real one.
    const terms = termsLeft(left, { card, clock: null, paymentId }, row);
    const before = left.payments.get(`${card.mode} ${paymentId}`);
    const transactionIds = new Map(Object.entries(row.booked));
    for (const { network_transaction_id, id } of before?.transactions ?? [])
      transactionIds.set(network_transaction_id, id);
    const one = bookOne(terms, payment, transactionIds, ttlMs);
    leaveTerms(left, paymentId, one);
    return one;
  });
}

/**
 * What a payment of a network's becomes on these terms.
 * @param transactionIds by the network's ids of the elements that are booked
 */
function bookOne(
  terms: PaymentTerms,
  { paymentId, snapshot, readAt }: PaymentToBook,
  transactionIds: ReadonlyMap<string, string>,
  ttlMs: number,
): BookedPayment {
  const { card, clock, authorization } = terms;
  const folded = foldDecided(terms, transactionIds);
  const ofFolded = folded && {
    paymentId,
    networkCardId: card.network_card_id ?? card.id,
    requests: [],
    // What a person has decided is booked without being told.
    movements: [],
    ...foldedState(folded),
  };
  const authorizationId = authorization?.id ?? newId('auth');
  return bookOn(
    terms,
    toPayment(terms),
    {
      snapshot: ofFolded ?? snapshot,
      readAt: readAt === null ? null : accountTime(clock, readAt).toISOString(),
      booked: new Set(transactionIds.keys()),
      now: bookingTime(terms, authorizationId),
      ttlMs,
    },
    {
      paymentId,
      networkPaymentId: paymentId,
      authorizationId,
      folded,
      refundedIds: transactionIds,
    },
  );
}

/**
 * The simulated network has no books of its own, so what a person says was cleared is taken from its hold here.
 * The last clearing ends the hold even if nothing was bought.
 * @returns null of another network's payment
 */
function foldDecided(
  { payment, handMade }: PaymentTerms,
  booked: ReadonlyMap<string, string>,
): FoldedPayment | null {
  let folded = payment?.folded ?? null;
  if (folded === null) return null;
  for (const { id } of folded.unreadable) {
    const made = handMade.get(id);
    if (made === undefined || booked.has(id)) continue;
    if (made.means === 'purchase') folded = foldHandMade(folded, id, made.amountCents);
    else if (id === folded.lastUnreadableId) folded = foldHandMade(folded, id, 0);
  }
  return folded;
}

/** With the elements that may be booked. */
const toAsked = (payments: readonly PaymentToBook[]): { payments: string } => ({
  payments: JSON.stringify(
    payments.map(({ cardId, paymentId, snapshot }) => ({
      card_id: cardId,
      payment_id: paymentId,
      elements: [...(snapshot?.movements ?? []), ...(snapshot?.unreadable ?? [])].map(({ id }) => id),
    })),
  ),
});

const readCards = readStatement(
  (db, { cardIds }: { cardIds: string[] }) =>
    db
      .selectFrom('card as c')
      .select(of('c', CARD_COLUMNS))
      .where('c.id', '=', sql<string>`ANY((SELECT ${cardIds}::text[])::text[])`),
  { acrossTenants: 'network' },
);

interface ReadRow extends TermsRead {
  payment_card_id: string | null;
  /** By the network's id of an element: its transaction. */
  booked: Record<string, string>;
}

// In a statement of its own, which sees what the last holder of each lock has committed.
const readPayments = readStatement(
  (_, { payments }: { payments: string }) => sql<ReadRow>`
    SELECT coalesce(a.posted, 0) AS card_cents, coalesce(a.held, 0) AS card_held_cents,
      coalesce(b.posted, 0) AS prepaid_cents, p.fee_plan, y.card_id AS payment_card_id, to_jsonb(y) AS payment,
      to_jsonb(z) AS authorization,
      coalesce((SELECT jsonb_object_agg(t.network_transaction_id, t.id) FROM card_transaction t
        WHERE t.mode = k.mode AND t.network_transaction_id = ANY (n.elements) AND t.type <> 'decline'), '{}') AS booked,
      hand_made(n.elements) AS hand_made
    FROM ROWS FROM (jsonb_to_recordset(${payments}::jsonb) AS (card_id text, payment_id text, elements text[]))
      WITH ORDINALITY s (card_id, payment_id, elements, place)
    LEFT JOIN card k ON k.id = s.card_id
    LEFT JOIN partner p ON p.id = k.partner_id
    LEFT JOIN ledger.account a ON a.card_id = k.id
    LEFT JOIN ledger.account b ON b.id = 'prepaid/' || k.mode || '/' || k.partner_id
    LEFT JOIN LATERAL (SELECT ${columnList('payment', PAYMENT_COLUMNS)}, authorization_id, card_id FROM payment
      WHERE mode = k.mode AND payment_id = s.payment_id) y ON true
    LEFT JOIN LATERAL (SELECT ${columnList('card_authorization', AUTHORIZATION_COLUMNS)} FROM card_authorization
      WHERE id = y.authorization_id) z ON true
    CROSS JOIN LATERAL (SELECT s.elements
      || ARRAY(SELECT u ->> 'id' FROM jsonb_array_elements(y.said -> 'unreadable') u) AS elements) n
    ORDER BY s.place`,
  { acrossTenants: 'network' },
);
