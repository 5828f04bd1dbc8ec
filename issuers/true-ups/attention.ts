import { sql } from 'kysely';
import type { Orm } from '../../platform/db/orm.ts';
import { readStatement } from '../../platform/db/sql.ts';
import { type AttentionItem, atIssuer } from '../../platform/monitoring/attention-item.ts';
import type { TrueUpDirection } from '../card-network.ts';

/** More than this share a line. */
const MAX_SINGLE = 20;
/** How long a true-up may take before it needs attention. */
const PATIENCE_MINUTES = 60;

/** What the card network refused to move from or to cards' accounts, or has not moved for an hour. */
export async function readUnfinishedTrueUps(orm: Orm): Promise<AttentionItem[]> {
  const rows = await unfinished(orm.em.fork(), { most: MAX_SINGLE + 1 });
  return rows.length > MAX_SINGLE ? rows.slice(0, 1).map(toItemForAll) : rows.map(toItem);
}

function toItem(row: TrueUpRow): AttentionItem {
  const { id, direction, amount_cents, card_id, status, reason } = row;
  const what =
    direction === 'from_card'
      ? `that were released from the blocked ${card_id} are still at the card network`
      : `that the prepaid balance paid for ${card_id} are not in its account at the card network`;
  const why =
    status === 'pending'
      ? `has not moved them for an hour${reason === null ? '' : ` (${reason})`}`
      : reason === 'key_expired'
        ? 'was not asked in time: it knows no transfer under our key, which is too old to be sent now'
        : `refused to move them (${reason})`;
  return {
    kind: 'true_up',
    id,
    partner_id: row.partner_id,
    mode: 'live',
    since: new Date(row.since).toISOString(),
    reason: `${amount_cents} cents ${what}, which ${why}`,
    at_issuer: atIssuer({ amountCents: amount_cents, token: row.token, card: row.network_card_id }),
    command: `npm run operator -- true-up retry ${id} --reason "…"`,
    or_command: `npm run operator -- true-up dismiss ${id} --reason "…"`,
    workflow_id: null,
  };
}

function toItemForAll({ since }: TrueUpRow): AttentionItem {
  return {
    kind: 'true_up',
    id: 'true_up',
    partner_id: null,
    mode: 'live',
    since: new Date(since).toISOString(),
    reason: `the accounts of more than ${MAX_SINGLE} cards at the card network have too much or too little, and it refused to move the money or gives no answer`,
    command: 'npm run operator -- true-up list',
    or_command: 'npm run operator -- true-up list --status refused',
    workflow_id: null,
  };
}

interface TrueUpRow {
  id: string;
  partner_id: string;
  card_id: string;
  network_card_id: string | null;
  direction: TrueUpDirection;
  token: string;
  amount_cents: string;
  status: 'pending' | 'refused';
  reason: string | null;
  since: string;
}

const unfinished = readStatement(
  (_, { most }: { most: number }) => sql<TrueUpRow>`
    SELECT id, partner_id, card_id,
      (SELECT k.network_card_id FROM card k WHERE k.id = card_id) AS network_card_id,
      direction, token, amount_cents, status, reason, created_at AS since FROM true_up
    WHERE status IN ('pending', 'refused')
      AND (status = 'refused' OR created_at < now() - ${sql.lit(PATIENCE_MINUTES)} * interval '1 minute')
    ORDER BY created_at, id LIMIT ${most}`,
  { acrossTenants: 'measurement' },
);
