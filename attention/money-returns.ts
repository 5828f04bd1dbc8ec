import { sql } from 'kysely';
import type { Orm } from '../db/orm.ts';
import { readStatement } from '../db/sql.ts';
import type { AttentionItem } from './attention-item.ts';

/** More than this share a line. */
const MAX_SINGLE = 20;
/** How long a return may take before it needs attention. */
const PATIENCE_MINUTES = 60;

/** Returns of blocked cards' money that the network refused, or has not made for an hour. */
export async function readUnreturned(orm: Orm): Promise<AttentionItem[]> {
  const rows = await unreturned(orm.em.fork(), { most: MAX_SINGLE + 1 });
  return rows.length > MAX_SINGLE ? rows.slice(0, 1).map(toItemForMany) : rows.map(toItem);
}

function toItem({ id, partner_id, card_id, amount_cents, reason, since }: UnreturnedRow): AttentionItem {
  const why =
    reason === null
      ? 'has not taken it back for an hour'
      : reason === 'key_expired'
        ? 'was not asked in time: it knows no transfer under our key, which is too old to be sent now'
        : `refused to take it back (${reason}), so it stays there`;
  return {
    kind: 'money_return',
    id,
    partner_id,
    since: new Date(since).toISOString(),
    reason: `${amount_cents} cents that were released from the blocked ${card_id} are still at the card network, which ${why}`,
    command: `npm run operator -- money-return retry ${id} --reason "…"`,
    or_command: `npm run operator -- money-return dismiss ${id} --reason "…"`,
    workflow_id: null,
  };
}

function toItemForMany({ since }: UnreturnedRow): AttentionItem {
  return {
    kind: 'money_return',
    id: 'money_return',
    partner_id: null,
    since: new Date(since).toISOString(),
    reason: `the money of more than ${MAX_SINGLE} blocked cards is still at the card network, which refused to take it back or gives no answer`,
    command: 'npm run operator -- money-return list',
    or_command: null,
    workflow_id: null,
  };
}

interface UnreturnedRow {
  id: string;
  partner_id: string;
  card_id: string;
  amount_cents: string;
  reason: string | null;
  since: string;
}

const unreturned = readStatement(
  (_, { most }: { most: number }) => sql<UnreturnedRow>`
    SELECT id, partner_id, card_id, amount_cents, reason, created_at AS since FROM money_return
    WHERE status IN ('pending', 'refused')
      AND (status = 'refused' OR created_at < now() - ${sql.lit(PATIENCE_MINUTES)} * interval '1 minute')
    ORDER BY created_at, id LIMIT ${most}`,
  { acrossTenants: 'measurement' },
);
