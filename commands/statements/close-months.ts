import { sql } from 'kysely';
import type { Orm } from '../../db/orm.ts';
import { autocommitStatement, readStatement } from '../../db/sql.ts';
import type { Row } from '../../db/tables.ts';
import type { Mode, Tenant } from '../../domain/mode.ts';
import { readAccountMonth } from '../../ledger/account-month.ts';

/** Transactions that began in a month have ended long before. */
const GRACE_MS = 3_600_000;
/** How many months one look finds. */
const MAX_DUE = 100;

/**
 * Closes months that are over, of all accounts: a closing has what the month's statement shows, so no statement ever adds up more
 * than what has been booked since the last one (docs/decisions/statements.md). Months without any transfer are left out. Workers
 * may do it at the same time: a month has one closing, and it is the same whoever writes it.
 * @returns how many months it found
 */
export async function closeMonths(
  orm: Orm,
  { graceMs = GRACE_MS, stopping }: { graceMs?: number; stopping?: AbortSignal } = {},
): Promise<number> {
  const due = await findDue(orm.em.fork(), { graceMs, limit: MAX_DUE });
  for (const { partner_id: partnerId, mode, month } of due) {
    if (stopping?.aborted) break;
    const closed = await readAccountMonth(orm.em.fork(), { partnerId, mode }, month);
    if (closed === null) throw new Error(`${month} is over for ${partnerId} and has not begun`);
    await insertClosing(orm, {
      partnerId,
      mode,
      month: `${month}-01`,
      flows: JSON.stringify(closed.flows),
      openingCents: closed.openingCents,
      closingCents: closed.closingCents,
      cardsOpeningCents: closed.cards.openingCents,
      cardsClosingCents: closed.cards.closingCents,
    });
  }
  return due.length;
}

// Of each account and mode the first month after the last closing in which something was booked, if that is over.
const findDue = readStatement(
  (_, { graceMs, limit }: { graceMs: number; limit: number }) => sql<
    Row<'month_closing', 'partner_id'> & { mode: Mode; month: string }
  >`
  SELECT p.id AS partner_id, m.mode, to_char(first.month, 'YYYY-MM') AS month
  FROM partner p CROSS JOIN (VALUES ('test'), ('live')) m (mode)
    LEFT JOIN LATERAL (
      SELECT month FROM month_closing WHERE partner_id = p.id AND mode = m.mode ORDER BY month DESC LIMIT 1) last ON true
    CROSS JOIN LATERAL (
      SELECT date_trunc('month', created_at AT TIME ZONE 'UTC') AS month FROM ledger.transfer
      WHERE partner_id = p.id AND mode = m.mode AND phase IN ('single', 'post')
        AND created_at >= coalesce((last.month + interval '1 month') AT TIME ZONE 'UTC', '-infinity')
      ORDER BY created_at LIMIT 1) first
  WHERE real_time(p.id, m.mode, (first.month + interval '1 month') AT TIME ZONE 'UTC')
    < now() - ${graceMs} * interval '1 millisecond'
  ORDER BY p.id, m.mode LIMIT ${limit}`,
  { acrossTenants: 'queue' },
);

interface Closing extends Tenant {
  month: string;
  flows: string;
  openingCents: number;
  closingCents: number;
  cardsOpeningCents: number;
  cardsClosingCents: number;
}

const insertClosing = autocommitStatement(
  (_, closing: Closing) => sql`
  INSERT INTO month_closing (partner_id, mode, month, flows, opening_cents, closing_cents, cards_opening_cents, cards_closing_cents)
  VALUES (${closing.partnerId}, ${closing.mode}, ${closing.month}, ${closing.flows}, ${closing.openingCents},
    ${closing.closingCents}, ${closing.cardsOpeningCents}, ${closing.cardsClosingCents})
  ON CONFLICT DO NOTHING`,
);
