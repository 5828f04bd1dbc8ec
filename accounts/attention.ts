import { sql } from 'kysely';
import type { Orm } from '../platform/db/orm.ts';
import { readStatement } from '../platform/db/sql.ts';
import type { AttentionItem } from '../platform/monitoring/attention-item.ts';

/** Large adjustments that wait for a second operator. */
export async function readWaitingAdjustments(orm: Orm): Promise<AttentionItem[]> {
  const rows = await pendingRequests(orm.em.fork(), {});
  return rows.map(({ id, partner_id, mode, amount_cents, requested_by, created_at }) => ({
    kind: 'adjustment',
    id,
    partner_id,
    mode,
    since: new Date(created_at).toISOString(),
    reason: `${requested_by} asked to adjust the ${mode} balance by ${amount_cents} cents, and another operator has to approve it`,
    command: `npm run operator -- adjustment approve ${id}`,
    or_command: `npm run operator -- adjustment reject ${id} --reason "…"`,
    workflow_id: null,
  }));
}

const pendingRequests = readStatement(
  (db) =>
    db
      .selectFrom('adjustment_request')
      .select(['id', 'partner_id', 'mode', 'amount_cents', 'requested_by', 'created_at'])
      .where('status', '=', sql.lit('pending' as const))
      .orderBy('created_at'),
  { acrossTenants: 'measurement' },
);
