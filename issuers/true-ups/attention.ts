import { sql } from 'kysely';
import type { TrueUpDirection } from '../../cards/tables.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { readStatement } from '../../platform/db/sql.ts';
import { type AttentionItem, atIssuer } from '../../platform/monitoring/attention-item.ts';

/** More than this of one direction share a line. */
const MAX_SINGLE = 20;
/** How long a return or a cover may take before it needs attention. */
const PATIENCE_MINUTES = 60;

/** What the card network refused to move from or to cards' accounts, or has not moved for an hour. */
export async function readUnfinishedTrueUps(orm: Orm): Promise<AttentionItem[]> {
  const em = orm.em.fork();
  const returns = await unfinished(em, { direction: 'from_card', most: MAX_SINGLE + 1 });
  const covers = await unfinished(em, { direction: 'to_card', most: MAX_SINGLE + 1 });
  return [
    ...(returns.length > MAX_SINGLE ? returns.slice(0, 1).map(toItemForReturns) : returns.map(toReturn)),
    ...(covers.length > MAX_SINGLE ? covers.slice(0, 1).map(toItemForCovers) : covers.map(toCover)),
  ];
}

function toReturn({
  id,
  partner_id,
  card_id,
  amount_cents,
  status,
  reason,
  since,
  ...row
}: TrueUpRow): AttentionItem {
  const why =
    status === 'pending'
      ? `has not taken it back for an hour${reason === null ? '' : ` (${reason})`}`
      : reason === 'key_expired'
        ? 'was not asked in time: it knows no transfer under our key, which is too old to be sent now'
        : `refused to take it back (${reason}), so it stays there`;
  return {
    kind: 'money_return',
    id,
    partner_id,
    mode: 'live',
    since: new Date(since).toISOString(),
    reason: `${amount_cents} cents that were released from the blocked ${card_id} are still at the card network, which ${why}`,
    at_issuer: atIssuer({ amountCents: amount_cents, token: row.token, card: row.network_card_id }),
    command: `npm run operator -- money-return retry ${id} --reason "…"`,
    or_command: `npm run operator -- money-return dismiss ${id} --reason "…"`,
    workflow_id: null,
  };
}

function toCover({
  id,
  partner_id,
  card_id,
  amount_cents,
  status,
  reason,
  since,
  ...row
}: TrueUpRow): AttentionItem {
  const why =
    status === 'pending'
      ? `has not moved them for an hour${reason === null ? '' : ` (${reason})`}`
      : reason === 'key_expired'
        ? 'was not asked in time: it knows no transfer under our key, which is too old to be sent now'
        : `refused to move them (${reason}), so they are missing there`;
  return {
    kind: 'money_cover',
    id,
    partner_id,
    mode: 'live',
    since: new Date(since).toISOString(),
    reason: `${amount_cents} cents that the prepaid balance paid for ${card_id} are not in its account at the card network, which ${why}`,
    at_issuer: atIssuer({ amountCents: amount_cents, token: row.token, card: row.network_card_id }),
    command: `npm run operator -- money-cover retry ${id} --reason "…"`,
    or_command: `npm run operator -- money-cover dismiss ${id} --reason "…"`,
    workflow_id: null,
  };
}

function toItemForReturns({ since }: TrueUpRow): AttentionItem {
  return {
    kind: 'money_return',
    id: 'money_return',
    partner_id: null,
    mode: 'live',
    since: new Date(since).toISOString(),
    reason: `the money of more than ${MAX_SINGLE} blocked cards is still at the card network, which refused to take it back or gives no answer`,
    command: 'npm run operator -- money-return list',
    or_command: null,
    workflow_id: null,
  };
}

function toItemForCovers({ since }: TrueUpRow): AttentionItem {
  return {
    kind: 'money_cover',
    id: 'money_cover',
    partner_id: null,
    mode: 'live',
    since: new Date(since).toISOString(),
    reason: `what the prepaid balance paid for more than ${MAX_SINGLE} cards is not in their accounts at the card network, which refused to move it or gives no answer`,
    command: 'npm run operator -- money-cover list',
    or_command: null,
    workflow_id: null,
  };
}

interface TrueUpRow {
  id: string;
  partner_id: string;
  card_id: string;
  network_card_id: string | null;
  token: string;
  amount_cents: string;
  status: 'pending' | 'refused';
  reason: string | null;
  since: string;
}

const unfinished = readStatement(
  (_, { direction, most }: { direction: TrueUpDirection; most: number }) => sql<TrueUpRow>`
    SELECT id, partner_id, card_id, (SELECT k.network_card_id FROM card k WHERE k.id = card_id) AS network_card_id, token,
      amount_cents, status, reason, created_at AS since FROM true_up
    WHERE status IN ('pending', 'refused') AND direction = ${direction}
      AND (status = 'refused' OR created_at < now() - ${sql.lit(PATIENCE_MINUTES)} * interval '1 minute')
    ORDER BY created_at, id LIMIT ${most}`,
  { acrossTenants: 'measurement' },
);
