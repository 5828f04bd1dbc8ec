import { sql } from 'kysely';
import { readIdTime } from '../crypto/new-id.ts';
import type { Orm } from '../db/orm.ts';
import { readStatement } from '../db/sql.ts';
import type { Mode } from '../domain/mode.ts';
import { deliverWebhookWorkflowId } from '../workflows/messages.ts';
import type { AttentionItem } from './attention-item.ts';

/** If an account has more than this, they share one line, with one command for all of them. */
const MAX_SINGLE = 20;

/** Events that were given up: one item each, or one for an account that has many. */
export async function readGivenUp(orm: Orm): Promise<AttentionItem[]> {
  const rows = await givenUp(orm.em.fork(), { maxSingle: MAX_SINGLE });
  return rows.map(({ id, partner_id, count, error, since }) => ({
    kind: 'webhook',
    id: id ?? partner_id,
    partner_id,
    workflow_id: id === null ? null : deliverWebhookWorkflowId(id),
    or_command: null,
    since: new Date(since).toISOString(),
    reason:
      id === null
        ? `${count} events were given up; the first with: ${error}`
        : `the event was given up: ${error}`,
    command: `npm run operator -- webhook requeue ${id ?? `--partner ${partner_id}`}`,
  }));
}

/** Events that wait for their endpoint to be enabled: one item an endpoint. */
export async function readParked(orm: Orm): Promise<AttentionItem[]> {
  const rows = await parked(orm.em.fork(), {});
  return rows.map(({ partner_id, mode, disabled_reason, count, first }) => ({
    kind: 'webhook_endpoint',
    id: partner_id,
    partner_id,
    since: readIdTime(first).toISOString(),
    reason:
      `${count === 1 ? 'one event waits' : `${count} events wait`} for the endpoint of ${mode} mode, which is disabled: ` +
      `${disabled_reason}; they are deleted 30 days after they happened`,
    command: `npm run operator -- webhook-endpoint enable ${partner_id} --mode ${mode}`,
    or_command: null,
    workflow_id: null,
  }));
}

interface ParkedRow {
  partner_id: string;
  mode: Mode;
  disabled_reason: string;
  count: number;
  /** The oldest event's id. */
  first: string;
}

const parked = readStatement(
  () => sql<ParkedRow>`
  SELECT w.partner_id, w.mode, w.disabled_reason, waiting.count, waiting.first
  FROM webhook_endpoint w CROSS JOIN LATERAL (
    SELECT count(*)::int AS count, min(event_id) AS first FROM delivery d
    WHERE d.status = 'parked' AND d.partner_id = w.partner_id AND d.mode = w.mode) waiting
  WHERE w.status = 'disabled' AND waiting.count > 0`,
  { acrossTenants: 'measurement' },
);

interface GivenUpRow {
  /** Null for an item that stands for all of the account's events. */
  id: string | null;
  partner_id: string;
  count: number;
  error: string | null;
  since: string;
}

const givenUp = readStatement(
  (_, { maxSingle }: { maxSingle: number }) => sql<GivenUpRow>`
  WITH account AS (
    SELECT partner_id, count(*)::int AS count, min(event_id) AS first FROM delivery WHERE status = 'given_up'
    GROUP BY partner_id
  ), item AS (
    SELECT d.event_id AS id, d.event_id, a.partner_id, a.count FROM account a
      JOIN delivery d ON d.status = 'given_up' AND d.partner_id = a.partner_id WHERE a.count <= ${maxSingle}
    UNION ALL
    SELECT NULL, a.first, a.partner_id, a.count FROM account a WHERE a.count > ${maxSingle}
  )
  SELECT i.id, i.partner_id, i.count, last.error, coalesce(last.started_at, e.created_at) AS since
  FROM item i JOIN event e ON e.id = i.event_id
    LEFT JOIN LATERAL (SELECT error, started_at FROM delivery_attempt a WHERE a.event_id = i.event_id
      ORDER BY number DESC LIMIT 1) last ON true`,
  { acrossTenants: 'measurement' },
);
