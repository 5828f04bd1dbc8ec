import { sql } from 'kysely';
import { accountsNow, heldClock } from '../accounts/clock.ts';
import type { Tenant } from '../domain/mode.ts';
import type { Row } from '../platform/db/entities.ts';
import { followingAccounts } from '../platform/db/following-accounts.ts';
import type { Orm } from '../platform/db/orm.ts';
import { anyOf, type Reader, readStatement, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import { bookPayments } from './book-payments.ts';

/** An authorization whose time is over. */
export type DueAuthorization = Row<
  'card_authorization',
  'id' | 'partner_id' | 'mode' | 'card_id' | 'network_authorization_id'
>;

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
    SELECT d.id, d.partner_id, d.mode, d.card_id, d.network_authorization_id
    FROM ${accountsNow(sql`SELECT partner_id, mode FROM following`)} f CROSS JOIN LATERAL (
      SELECT z.id, z.partner_id, z.mode, z.card_id, z.network_authorization_id,
        row_number() OVER (ORDER BY z.expires_at, z.id) AS turn
      FROM card_authorization z
      WHERE ${IS_DUE} AND z.id <> ALL (${except}::text[])
      ORDER BY z.expires_at, z.id LIMIT ${limit}) d
    ORDER BY d.turn, random() LIMIT ${limit}`,
  { acrossTenants: 'queue' },
);

/**
 * Expires authorizations of one account, together, in one transaction. Cards that are locked are left for the
 * next time: what holds the lock may decide about the same authorization.
 * @returns the ids of those that have ended now or before; the others are on locked cards, or this process's
 * clock is behind
 */
export function expireAuthorizations(
  orm: Orm,
  { partnerId, mode }: Tenant,
  due: readonly DueAuthorization[],
): Promise<string[]> {
  return transaction(orm, async (tx) => {
    const cardIds = [...new Set(due.map(({ card_id: cardId }) => cardId))];
    const locked = new Set((await lockFreeCards(tx, { partnerId, mode, cardIds })).map(({ id }) => id));
    const free = due.filter(({ card_id: cardId }) => locked.has(cardId));
    const payments = free.map(({ id, card_id: cardId, network_authorization_id: networkId }) => ({
      cardId,
      paymentId: networkId ?? id,
      snapshot: null,
      readAt: null,
    }));
    // Their time is over, whatever their networks hold; how long a new one holds does not matter here.
    const booked = await bookPayments(tx, payments, { ttlMs: 0 });
    return free.filter((_, index) => booked[index]?.authorization?.status !== 'pending').map(({ id }) => id);
  });
}

const lockFreeCards = writeStatement(
  (db, { partnerId, mode, cardIds }: Tenant & { cardIds: readonly string[] }) =>
    db
      .selectFrom('card')
      .select(['id', heldClock(sql.ref('partner_id'), sql.ref('mode')).as('clock')])
      .where('partner_id', '=', partnerId)
      .where('mode', '=', mode)
      .where('id', '=', anyOf(cardIds))
      .orderBy('id')
      .forNoKeyUpdate()
      .skipLocked(),
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
