import { sql } from 'kysely';
import { readIdTime } from '../platform/crypto/new-id.ts';
import type { Orm } from '../platform/db/orm.ts';
import { readStatement } from '../platform/db/sql.ts';
import type { AttentionItem } from '../platform/monitoring/attention-item.ts';
import { deliverWebhookWorkflowId } from '../workflows/messages.ts';

/** If an account has more than this, they share one line, with one command for all of them. */
const MAX_SINGLE = 20;

/**
 * Live events that were given up at an endpoint that still exists: one item each, or one for an account that
 * has many. Test mode's are their partner's own business, here and below.
 */
export async function readGivenUp(orm: Orm): Promise<AttentionItem[]> {
  const rows = await givenUp(orm.em.fork(), { maxSingle: MAX_SINGLE });
  return rows.map(({ id, endpoint_id, partner_id, count, error, since }) => ({
    kind: 'webhook',
    id: id ?? partner_id,
    partner_id,
    mode: 'live',
    workflow_id: id === null ? null : deliverWebhookWorkflowId(id, endpoint_id),
    or_command: null,
    since: new Date(since).toISOString(),
    reason:
      id === null
        ? `${count} events were given up; the first with: ${error}`
        : `the event was given up: ${error}`,
    command: `npm run operator -- webhook requeue ${id === null ? `--partner ${partner_id}` : `${id} --endpoint ${endpoint_id}`}`,
  }));
}

/** Live events that wait for their endpoint to be enabled: one item an endpoint. */
export async function readParked(orm: Orm): Promise<AttentionItem[]> {
  const rows = await parked(orm.em.fork(), {});
  return rows.map(({ partner_id, endpoint_id, disabled_reason, count, first }) => ({
    kind: 'webhook_endpoint',
    id: partner_id,
    partner_id,
    mode: 'live',
    since: readIdTime(first).toISOString(),
    reason:
      `${count === 1 ? 'one event waits' : `${count} events wait`} for the endpoint ${endpoint_id}, which is disabled: ` +
      `${disabled_reason}; they are deleted 30 days after they happened`,
    command: `npm run operator -- webhook-endpoint enable ${partner_id} --mode live --endpoint ${endpoint_id}`,
    or_command: null,
    workflow_id: null,
  }));
}

interface ParkedRow {
  partner_id: string;
  endpoint_id: string;
  disabled_reason: string;
  count: number;
  /** The oldest event's id. */
  first: string;
}

const parked = readStatement(
  () => sql<ParkedRow>`
  SELECT w.partner_id, w.id AS endpoint_id, w.disabled_reason, waiting.count, waiting.first
  FROM webhook_endpoint w CROSS JOIN LATERAL (
    SELECT count(*)::int AS count, min(event_id) AS first FROM delivery d
    WHERE d.status = 'parked' AND d.partner_id = w.partner_id AND d.mode = w.mode
      AND d.endpoint_id = w.id) waiting
  WHERE w.status = 'disabled' AND w.mode = 'live' AND waiting.count > 0`,
  { acrossTenants: 'measurement' },
);

interface GivenUpRow {
  /** Null for an item that stands for all of the account's events. */
  id: string | null;
  endpoint_id: string;
  partner_id: string;
  count: number;
  error: string | null;
  since: string;
}

const givenUp = readStatement(
  (_, { maxSingle }: { maxSingle: number }) => sql<GivenUpRow>`
  WITH given_up AS MATERIALIZED (
    SELECT d.event_id, d.endpoint_id, d.partner_id FROM delivery d
    WHERE d.status = 'given_up' AND d.mode = 'live' AND EXISTS (SELECT FROM webhook_endpoint w
      WHERE w.id = d.endpoint_id)
  ), account AS (
    SELECT partner_id, count(*)::int AS count FROM given_up GROUP BY partner_id
  ), item AS (
    SELECT g.event_id AS id, g.*, a.count FROM account a JOIN given_up g ON g.partner_id = a.partner_id
      WHERE a.count <= ${maxSingle}
    UNION ALL
    SELECT NULL, first.*, a.count FROM account a CROSS JOIN LATERAL (
      SELECT * FROM given_up g WHERE g.partner_id = a.partner_id ORDER BY g.event_id LIMIT 1) first
      WHERE a.count > ${maxSingle}
  )
  SELECT i.id, i.endpoint_id, i.partner_id, i.count, last.error,
    coalesce(last.started_at, e.created_at) AS since
  FROM item i JOIN event e ON e.id = i.event_id
    LEFT JOIN LATERAL (SELECT error, started_at FROM delivery_attempt a
      WHERE a.event_id = i.event_id AND a.endpoint_id = i.endpoint_id ORDER BY number DESC
        LIMIT 1) last ON true`,
  { acrossTenants: 'measurement' },
);
