import { sql } from 'kysely';
import { readIdTime } from '../platform/crypto/new-id.ts';
import type { Orm } from '../platform/db/orm.ts';
import { readStatement } from '../platform/db/sql.ts';
import type { AttentionItem } from '../platform/monitoring/attention-item.ts';
import { deliverWebhookWorkflowId } from '../workflows/messages.ts';
import { DISABLED_BY_PARTNER } from './endpoint-status.ts';

/** If an account has more than this, they share one line, with one command for all of them. */
const MAX_SINGLE = 20;
/** Counting stops here, at each endpoint: for an operator, more makes no difference. */
const MAX_COUNTED = 1_000;

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
        ? `${counted(count)} events were given up; the first with: ${error}`
        : `the event was given up: ${error}`,
    command: `npm run operator -- webhook requeue ${id === null ? `--partner ${partner_id}` : `${id} --endpoint ${endpoint_id}`}`,
  }));
}

/**
 * Live events that wait for their endpoint to be enabled: one item an endpoint. What a partner has disabled is
 * the partner's to enable.
 */
export async function readParked(orm: Orm): Promise<AttentionItem[]> {
  const rows = await parked(orm.em.fork(), {});
  return rows.map(({ partner_id, endpoint_id, disabled_reason, count, first }) => ({
    kind: 'webhook_endpoint',
    id: partner_id,
    partner_id,
    mode: 'live',
    since: readIdTime(first).toISOString(),
    reason:
      `${count === 1 ? 'one event waits' : `${counted(count)} events wait`} for the endpoint ${endpoint_id}, which is disabled: ` +
      `${disabled_reason}; they are deleted 30 days after they happened`,
    command: `npm run operator -- webhook-endpoint enable ${partner_id} --mode live --endpoint ${endpoint_id}`,
    or_command: null,
    workflow_id: null,
  }));
}

const counted = (count: number): string =>
  `${count > MAX_COUNTED ? 'more than ' : ''}${Math.min(count, MAX_COUNTED).toLocaleString('en-US')}`;

/** An endpoint's oldest deliveries of a status, enough to be counted, for a lateral join with it as `w`. */
const oldest = (status: 'parked' | 'given_up') => sql`
  SELECT event_id FROM delivery WHERE status = ${sql.lit(status)} AND partner_id = w.partner_id
    AND mode = w.mode AND endpoint_id = w.id
  ORDER BY event_id LIMIT ${sql.lit(MAX_COUNTED + 1)}`;

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
    SELECT count(*)::int AS count, min(event_id) AS first FROM (${oldest('parked')}) d) waiting
  WHERE w.status = 'disabled' AND w.disabled_reason <> ${sql.lit(DISABLED_BY_PARTNER)} AND w.mode = 'live'
    AND waiting.count > 0`,
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
    SELECT d.event_id, w.id AS endpoint_id, w.partner_id
    FROM webhook_endpoint w CROSS JOIN LATERAL (${oldest('given_up')}) d
    WHERE w.mode = 'live'
  ), account AS (
    SELECT partner_id, count(*)::int AS count FROM given_up GROUP BY partner_id
  ), item AS (
    SELECT g.event_id AS id, g.*, a.count FROM account a JOIN given_up g ON g.partner_id = a.partner_id
      WHERE a.count <= ${maxSingle}
    UNION ALL
    SELECT NULL, first.* FROM (SELECT DISTINCT ON (g.partner_id) g.*, a.count
      FROM account a JOIN given_up g ON g.partner_id = a.partner_id
      WHERE a.count > ${maxSingle} ORDER BY g.partner_id, g.event_id) first
  )
  SELECT i.id, i.endpoint_id, i.partner_id, i.count, last.error,
    coalesce(last.started_at, e.created_at) AS since
  FROM item i JOIN event e ON e.id = i.event_id
    LEFT JOIN LATERAL (SELECT error, started_at FROM delivery_attempt a
      WHERE a.event_id = i.event_id AND a.endpoint_id = i.endpoint_id ORDER BY number DESC
        LIMIT 1) last ON true`,
  { acrossTenants: 'measurement' },
);
