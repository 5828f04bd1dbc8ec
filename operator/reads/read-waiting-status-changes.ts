import type { Orm } from '../../db/orm.ts';
import { query } from '../../db/sql.ts';
import { STATUS_CHANGES, type StatusChangeOperation } from '../../domain/status-change.ts';
import { STATUS_CHANGE_PATIENCE_MS } from '../../workflows/messages.ts';
import type { AttentionItem } from './read-attention.ts';

/** Cards with a freeze, unfreeze or block that takes too long; of several of one card the one the network is asked for. */
export async function readWaitingStatusChanges(orm: Orm): Promise<AttentionItem[]> {
  const rows = await query<{ id: string; operation: StatusChangeOperation; asked: boolean; since: string }>(
    orm.em.fork(),
    `SELECT DISTINCT ON (k.id) k.id, c.operation, k.status_change_claim_id IS NOT NULL AS asked,
       c.created_at + $2 * interval '1 millisecond' AS since
     FROM idempotency_claim c JOIN card k ON k.id = c.card_id
     WHERE c.response_status IS NULL AND c.operation = ANY ($1)
       AND c.created_at < now() - $2 * interval '1 millisecond'
     ORDER BY k.id, c.id IS DISTINCT FROM k.status_change_claim_id, c.created_at`,
    [Object.keys(STATUS_CHANGES), STATUS_CHANGE_PATIENCE_MS],
  );
  return rows.map(({ id, operation, asked, since }) => ({
    kind: 'card_status_change',
    id,
    since: new Date(since).toISOString(),
    reason: asked
      ? `the network has not confirmed that the card is ${STATUS_CHANGES[operation].done}: check that it can be reached`
      : `the request to have the card ${STATUS_CHANGES[operation].done} has not started: check that a worker is running`,
    command: `npm run operator -- card show ${id}`,
  }));
}
