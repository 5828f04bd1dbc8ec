import { sql } from 'kysely';
import { accountsNow, heldClock } from '../accounts/clock.ts';
import type { Tenant } from '../domain/mode.ts';
import { NOWHERE } from '../domain/payment.ts';
import { NO_CONTROLS } from '../domain/spending-controls.ts';
import { AUTHORIZATION_COLUMNS, CARD_COLUMNS, PAYMENT_COLUMNS } from '../platform/db/columns.ts';
import type { Row } from '../platform/db/entities.ts';
import { followingAccounts } from '../platform/db/following-accounts.ts';
import type { Orm } from '../platform/db/orm.ts';
import { anyOf, columnList, type Reader, readStatement, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import type { AuthorizationRow } from './authorization-resource.ts';
import { bookPayments, type PaymentToBook } from './book-payments.ts';
import type { BookedPayment, PaymentTerms } from './booking-rows.ts';
import { takeSimulated } from './take-simulated.ts';
import { handMadeOf, type TermsRead } from './terms.ts';
import { leaveTerms, nothingBooked, termsLeft } from './terms-left.ts';
import { writeBookings } from './write-bookings.ts';

/** An authorization whose time is over. */
export type DueAuthorization = Row<'card_authorization', 'id' | 'partner_id' | 'mode' | 'card_id'>;

const WITH_PENDING = {
  table: 'card_authorization',
  account: ['partner_id', 'mode'],
  isQueued: sql`status = 'pending'`,
  after: sql`'', ''`,
} as const;

// An element that nobody has decided keeps the hold of its authorization `z`. OFFSET 0 has PostgreSQL look up
// the payment of each that is due, rather than join payments.
const IS_DUE = sql`z.status = 'pending' AND z.partner_id = f.partner_id AND z.mode = f.mode AND z.expires_at <= f.now
        AND NOT EXISTS (
          SELECT FROM payment y CROSS JOIN LATERAL jsonb_array_elements(y.said -> 'unreadable') u
          WHERE y.mode = z.mode AND y.payment_id = coalesce(z.network_authorization_id, z.id)
            AND y.said -> 'unreadable' <> '[]'
            AND NOT EXISTS (SELECT FROM payment_element e WHERE e.id = u ->> 'id' AND e.approved)
          OFFSET 0)`;

/**
 * Finds pending authorizations whose time is over: the oldest of each account first, and accounts take turns,
 * so that however many one account has, another's are found as soon. Those in `except` are left alone, and
 * so are those with an element that a person has to decide first.
 */
export const findDueAuthorizations = readStatement(
  (_, { except, limit }: { except: readonly string[]; limit: number }) => sql<DueAuthorization>`
    WITH RECURSIVE ${followingAccounts(WITH_PENDING)}
    SELECT d.id, d.partner_id, d.mode, d.card_id
    FROM ${accountsNow(sql`SELECT partner_id, mode FROM following`)} f CROSS JOIN LATERAL (
      SELECT z.id, z.partner_id, z.mode, z.card_id, row_number() OVER (ORDER BY z.expires_at, z.id) AS turn
      FROM card_authorization z
      WHERE ${IS_DUE} AND z.id <> ALL (${except}::text[])
      ORDER BY z.expires_at, z.id LIMIT ${limit}) d
    ORDER BY d.turn, random() LIMIT ${limit}`,
  { acrossTenants: 'queue' },
);

/**
 * Expires authorizations of one account, together, in one transaction. Cards that are locked are left for the
 * next time: what holds the lock may decide about the same authorization.
 * @returns the ids of those that have ended now or before; the others are on locked cards
 */
export function expireAuthorizations(
  orm: Orm,
  { partnerId, mode }: Tenant,
  due: readonly DueAuthorization[],
): Promise<string[]> {
  const ids = due.map(({ id }) => id);
  return transaction(orm, async (tx) => {
    const cardIds = [...new Set(due.map(({ card_id: cardId }) => cardId))];
    const cards = await lockFreeCards(tx, { partnerId, mode, cardIds });
    const locked = new Map(cards.map((card) => [card.id, card]));
    const rows = await readLocked(tx, { partnerId, mode, ids, cardIds: [...locked.keys()] });
    const left = nothingBooked();
    const booked: BookedPayment[] = [];
    const ofIssuers: PaymentToBook[] = [];
    for (const { card_cents, card_held_cents, prepaid_cents, payment, hand_made, ...authorization } of rows) {
      const card = locked.get(authorization.card_id);
      if (card === undefined || payment === null)
        throw new Error(`${authorization.id} has no locked card or no payment`);
      if (payment.folded === null) {
        ofIssuers.push({ cardId: card.id, paymentId: payment.payment_id, snapshot: null, readAt: null });
        continue;
      }
      const { payment_id: paymentId } = payment;
      const money = { card_cents, card_held_cents, prepaid_cents, fee_plan: null };
      const read = { ...money, authorization, payment, hand_made };
      const terms = termsLeft(left, { card, clock: card.clock, paymentId }, read);
      const ended = expireSimulated(terms, authorization);
      leaveTerms(left, paymentId, ended);
      booked.push(ended);
    }
    await writeBookings(tx, booked);
    // Their time is over, whatever their networks hold; how long a new one holds does not matter here.
    if (ofIssuers.length > 0) await bookPayments(tx, ofIssuers, { ttlMs: 0 });
    return due.filter(({ card_id: cardId }) => locked.has(cardId)).map(({ id }) => id);
  });
}

/** An expiry is a message of the simulated network, too. */
function expireSimulated(terms: PaymentTerms, authorization: AuthorizationRow): BookedPayment {
  const message = {
    id: `expiry/${authorization.id}`,
    type: 'expiry',
    amountCents: null,
    isFinal: true,
    merchant: NOWHERE,
    refunds: null,
  } as const;
  const simulated = { message, networkPaymentId: authorization.network_authorization_id, ttlMs: 0 };
  return takeSimulated({ ...terms, controls: NO_CONTROLS }, simulated);
}

const lockFreeCards = writeStatement(
  (db, { partnerId, mode, cardIds }: Tenant & { cardIds: readonly string[] }) =>
    db
      .selectFrom('card')
      .select([...CARD_COLUMNS, heldClock(sql.ref('partner_id'), sql.ref('mode')).as('clock')])
      .where('partner_id', '=', partnerId)
      .where('mode', '=', mode)
      .where('id', '=', anyOf(cardIds))
      .orderBy('id')
      .forNoKeyUpdate()
      .skipLocked(),
);

type LockedRow = AuthorizationRow & Omit<TermsRead, 'fee_plan' | 'authorization'>;

// In a separate statement, so that it sees what the last holder of each card's lock has committed.
const readLocked = readStatement(
  (_, values: Tenant & { ids: readonly string[]; cardIds: readonly string[] }) => sql<LockedRow>`
    SELECT ${columnList('card_authorization', AUTHORIZATION_COLUMNS, 'z')}, a.posted AS card_cents, a.held AS card_held_cents,
      y.payment, y.hand_made,
      coalesce((SELECT b.posted FROM ledger.account b WHERE b.kind = 'prepaid' AND b.partner_id = ${values.partnerId}
        AND b.mode = ${values.mode} AND b.id = 'prepaid/' || ${values.mode} || '/' || ${values.partnerId}), 0) AS prepaid_cents
    FROM card_authorization z JOIN ledger.account a ON a.card_id = z.card_id AND a.partner_id = z.partner_id AND a.mode = z.mode
    LEFT JOIN LATERAL (
      SELECT to_jsonb(q) AS payment, ${handMadeOf('n.said')} FROM payment n
      CROSS JOIN LATERAL (SELECT ${columnList('payment', PAYMENT_COLUMNS, 'n')}) q
      WHERE n.mode = ${values.mode} AND n.partner_id = ${values.partnerId}
        AND n.payment_id = coalesce(z.network_authorization_id, z.id)
    ) y ON true
    WHERE z.partner_id = ${values.partnerId} AND z.mode = ${values.mode} AND z.id = ANY (${values.ids}::text[])
      AND z.card_id = ANY (${values.cardIds}::text[]) AND z.status = 'pending'
      AND z.expires_at <= account_now(${values.partnerId}, ${values.mode})
    ORDER BY z.expires_at, z.id`,
);

/** How long the oldest authorization that is due has been so, in seconds of real time: 0 if none is. */
export async function readExpiryLag(em: Reader): Promise<number> {
  const [row] = await oldestDue(em, {});
  return row?.lag_seconds ?? 0;
}

const oldestDue = readStatement(
  () => sql<{ lag_seconds: number | null }>`
    WITH RECURSIVE ${followingAccounts(WITH_PENDING)}
    SELECT max(extract(epoch FROM now() - real_time(f.partner_id, f.mode, d.expires_at)))::float8 AS lag_seconds
    FROM (SELECT partner_id, mode, account_now(partner_id, mode) AS now FROM following OFFSET 0) f CROSS JOIN LATERAL (
      SELECT z.expires_at FROM card_authorization z
      WHERE ${IS_DUE} ORDER BY z.expires_at LIMIT 1) d`,
  { acrossTenants: 'measurement' },
);
