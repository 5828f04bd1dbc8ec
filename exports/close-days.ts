import { sql } from 'kysely';
import type { Logger } from 'pino';
import type { Mode, Tenant } from '../domain/mode.ts';
import { readDayToClose } from '../ledger/account-month.ts';
import type { Row } from '../platform/db/entities.ts';
import type { Orm } from '../platform/db/orm.ts';
import { autocommitStatement, readStatement } from '../platform/db/sql.ts';
import { describeError } from '../platform/process/describe-error.ts';

/** Transactions that began on a day have ended long before. */
const GRACE_MS = 3_600_000;
/** How many accounts are found at once. */
const BATCH = 100;

/**
 * Closes days that are over, of all accounts, so no statement ever adds up more than what has been booked
 * since the last one (docs/decisions/statements.md). Accounts take turns, a day each, and one that can't be
 * closed delays no other: it is logged, and left alone until the next call. Days without any transfer are
 * left out. Workers may do it at the same time: a day has one closing, and it is the same whoever writes it.
 * @returns how many days it closed
 */
export async function closeDays(
  { orm, logger }: { orm: Orm; logger: Logger },
  { graceMs = GRACE_MS, stopping }: { graceMs?: number; stopping?: AbortSignal } = {},
): Promise<number> {
  const failed = new Set<string>();
  let closed = 0;
  let closedInTurn: number;
  do {
    closedInTurn = 0;
    for (let after: Due | null = null, due: Due[]; ; after = due.at(-1) ?? null) {
      const [afterPartnerId, afterMode] = [after?.partner_id ?? '', after?.mode ?? ''];
      due = await findDue(orm.em.fork(), { afterPartnerId, afterMode, graceMs });
      for (const { partner_id: partnerId, mode, day } of due) {
        if (stopping?.aborted) return closed;
        if (failed.has(`${partnerId}/${mode}`)) continue;
        try {
          await closeDay(orm, { partnerId, mode }, day);
          closedInTurn += 1;
        } catch (error) {
          failed.add(`${partnerId}/${mode}`);
          logger.error({ partnerId, mode, day, error: describeError(error) }, 'could not close a day');
        }
      }
      if (due.length < BATCH) break;
    }
    closed += closedInTurn;
  } while (closedInTurn > 0);
  return closed;
}

async function closeDay(orm: Orm, tenant: Tenant, day: string): Promise<void> {
  const { flows, closingCents, cardsClosingCents } = await readDayToClose(orm.em.fork(), tenant, day);
  const { partnerId, mode } = tenant;
  await insertClosing(orm, {
    partnerId,
    mode,
    day,
    flows: JSON.stringify(flows),
    closingCents,
    cardsClosingCents,
  });
}

type Due = Row<'day_closing', 'partner_id'> & { mode: Mode; day: string };

// Of each account and mode the first day after the last closing on which something was booked, if that is
// over.
const findDue = readStatement(
  (_, values: { afterPartnerId: string; afterMode: string; graceMs: number }) => sql<Due>`
  SELECT p.id AS partner_id, m.mode, to_char(first.day, 'YYYY-MM-DD') AS day
  FROM partner p CROSS JOIN (VALUES ('live'), ('test')) m (mode)
    LEFT JOIN LATERAL (
      SELECT day FROM day_closing WHERE partner_id = p.id AND mode = m.mode
        ORDER BY day DESC LIMIT 1) last ON true
    CROSS JOIN LATERAL (
      SELECT date_trunc('day', created_at AT TIME ZONE 'UTC') AS day FROM ledger.transfer
      WHERE partner_id = p.id AND mode = m.mode AND phase IN ('single', 'post')
        AND created_at >= coalesce((last.day + 1)::timestamp AT TIME ZONE 'UTC', '-infinity')
      ORDER BY created_at LIMIT 1) first
  WHERE p.id >= ${values.afterPartnerId} AND (p.id, m.mode) > (${values.afterPartnerId}, ${values.afterMode})
    AND real_time(p.id, m.mode, (first.day + interval '1 day') AT TIME ZONE 'UTC')
      < now() - ${values.graceMs} * interval '1 millisecond'
  ORDER BY p.id, m.mode LIMIT ${sql.lit(BATCH)}`,
  { acrossTenants: 'queue' },
);

interface Closing extends Tenant {
  day: string;
  flows: string;
  closingCents: number;
  cardsClosingCents: number;
}

const insertClosing = autocommitStatement(
  (_, closing: Closing) => sql`
  WITH closed AS (
    INSERT INTO day_closing (partner_id, mode, day, flows, closing_cents, cards_closing_cents)
    VALUES (${closing.partnerId}, ${closing.mode}, ${closing.day}, ${closing.flows}, ${closing.closingCents},
      ${closing.cardsClosingCents})
    ON CONFLICT DO NOTHING)
  DELETE FROM account_day
  WHERE partner_id = ${closing.partnerId} AND mode = ${closing.mode} AND day <= ${closing.day}::date`,
);
