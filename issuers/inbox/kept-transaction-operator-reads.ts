import { sql } from 'kysely';
import type { NetworkTransaction, WhyKept } from '../../domain/network-transaction.ts';
import { unknownId } from '../../domain/refusal.ts';
import type { KeyRing } from '../../platform/crypto/key-ring.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { readStatement } from '../../platform/db/sql.ts';
import { openReport } from './kept-messages.ts';
import type { NetworkMessageStatus } from './tables.ts';

/** A transaction that the network reported and that could not be booked at once. */
export interface KeptTransaction {
  id: string;
  /**
   * Null while it waits; the card's and partner's are null as long as no live card has its id at the network.
   */
  transaction_id: string | null;
  status: NetworkMessageStatus;
  /** Why it was kept, or could not be booked when that was last tried. */
  reason: WhyKept;
  network_transaction_id: string;
  network_card_id: string | null;
  card_id: string | null;
  partner_id: string | null;
  created: string;
  ended_at: string | null;
}

interface KeptFilter {
  status: NetworkMessageStatus;
  reason: WhyKept | null;
  /** At most 10,001. */
  limit: number;
}

/** Newest first. */
export async function readKeptTransactions(orm: Orm, filter: KeptFilter): Promise<KeptTransaction[]> {
  const { status, reason, limit } = filter;
  return (await selectNewest(orm.em.fork(), { status, reason, limit })).map(present);
}

/** What the network reported; a part that can't be read is null. */
type Reported = Omit<
  NetworkTransaction,
  'networkCardId' | 'networkTransactionId' | 'networkPaymentId' | 'type' | 'amountCents' | 'currency'
> & {
  type: string | null;
  amount: number | null;
  currency: string | null;
  /** The names of fields that this release does not understand. */
  unreadable: string[];
};

/** @throws Refusal if there is none, Error if its key is not in the ring */
export async function readKeptTransaction(
  orm: Orm,
  ring: KeyRing,
  id: string,
): Promise<KeptTransaction & { reported: Reported }> {
  const [row] = await withId(orm.em.fork(), { id });
  if (row === undefined) throw unknownId('nmsg', id, 'run "operator transaction kept"');
  const { type, amountCents, currency, forced, merchant, unreadable } = openReport(ring, id, row.body);
  return {
    ...present(row),
    reported: { type, amount: amountCents, currency, forced, merchant, unreadable },
  };
}

type KeptRow = Omit<KeptTransaction, 'created'> & { created_at: string; body: Buffer };

const KEPT = sql`SELECT m.id, m.transaction_id, m.status, m.reason, m.message_id AS network_transaction_id,
  m.network_card_id, coalesce(t.card_id, c.id) AS card_id, coalesce(t.partner_id, c.partner_id) AS partner_id,
  m.created_at, m.ended_at, m.body
  FROM network_message m
  LEFT JOIN card c ON c.network_card_id = m.network_card_id AND c.mode = 'live'
  LEFT JOIN card_transaction t ON t.id = m.transaction_id`;

const selectNewest = readStatement(
  (_, { status, reason, limit }: KeptFilter) => sql<KeptRow>`
    ${KEPT} WHERE m.status = ${status} AND m.reason = coalesce(${reason}, m.reason) ORDER BY m.id DESC LIMIT ${limit}`,
  { acrossTenants: 'operator' },
);

const withId = readStatement((_, { id }: { id: string }) => sql<KeptRow>`${KEPT} WHERE m.id = ${id}`, {
  acrossTenants: 'operator',
});

function present({ created_at, ended_at, body: _, ...row }: KeptRow): KeptTransaction {
  return {
    ...row,
    created: new Date(created_at).toISOString(),
    ended_at: ended_at === null ? null : new Date(ended_at).toISOString(),
  };
}
