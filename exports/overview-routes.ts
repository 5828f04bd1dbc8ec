import { sql } from 'kysely';
import { z } from 'zod';
import { declare, resource } from '../api/http/route.ts';
import { CardStatus } from '../domain/card-status.ts';
import type { Tenant } from '../domain/mode.ts';
import { accountId } from '../ledger/posting.ts';
import type { Row } from '../platform/db/entities.ts';
import type { ReadList } from '../platform/db/read-replica.ts';
import { type Reader, tenantStatement } from '../platform/db/sql.ts';
import { OVERVIEW } from './examples.ts';
import { MAX_COUNTED, OverviewResource } from './overview-resource.ts';

const getOverview = declare({
  method: 'get',
  path: '/overview',
  scope: 'balance:read',
  alsoScope: 'cards:read',
  operationId: 'overview.get',
  summary: 'Retrieve the overview',
  description:
    'Your account at a glance: cards by status, 30 days of balance and spending, and what waits. It needs both `balance:read` and ' +
    '`cards:read`.',
  query: z.strictObject({}),
  responses: { 200: OverviewResource },
  examples: { 200: OVERVIEW },
});

export const overview = resource({ getOverview }, ({ readList }: { readList: ReadList }) => ({
  getOverview: async ({ caller }) => ({
    status: 200,
    body: await readList((from) => readOverview(from.em.fork(), caller)),
  }),
}));

/**
 * An account at a glance, whatever its size: from counters and the closings of its days, never by adding rows
 * up (docs/decisions/overview.md).
 */
export async function readOverview(em: Reader, { partnerId, mode }: Tenant): Promise<OverviewResource> {
  const [counts] = await selectCounts(em, { partnerId, mode }, { maxCounted: MAX_COUNTED });
  const days = await selectDays(
    em,
    { partnerId, mode },
    { prepaidId: accountId('prepaid', partnerId, mode) },
  );
  const cards = CardStatus.options.map((status) => [status, Number(counts?.[status] ?? 0)]);
  return {
    object: 'overview',
    cards: Object.fromEntries(cards) as OverviewResource['cards'],
    days: days.map(({ day, closing, spent, refunded }) => ({
      date: day,
      closing_balance: Number(closing),
      spent: Number(spent),
      refunded: Number(refunded),
    })),
    pending_operations: counts?.operations ?? 0,
    deposits_waiting: counts?.deposits ?? 0,
    mode,
  };
}

interface Counts extends Row<'card_count', CardStatus> {
  operations: number;
  deposits: number;
}

// What waits has no counter, as few things wait: an index has them, and no more than the first are counted.
const selectCounts = tenantStatement(
  (_, { partnerId, mode, maxCounted }: Tenant & { maxCounted: number }) => sql<Counts>`
  SELECT c.funding_pending, c.active, c.frozen, c.blocked, c.failed,
    (SELECT count(*) FROM (
      SELECT FROM idempotency_claim WHERE partner_id = ${partnerId} AND mode = ${mode}
        AND operation_status IN ('in_progress', 'awaiting_review') LIMIT ${maxCounted}) o)::int AS operations,
    (SELECT least(count(*), ${maxCounted}) FROM (
      (SELECT FROM deposit WHERE partner_id = ${partnerId} AND mode = ${mode}
        AND status IN ('awaiting_payment', 'confirming') LIMIT ${maxCounted})
      UNION ALL
      (SELECT FROM deposit WHERE partner_id = ${partnerId} AND mode = ${mode} AND status = 'needs_review'
        LIMIT ${maxCounted})) d)::int AS deposits
  FROM (SELECT) one LEFT JOIN card_count c ON c.partner_id = ${partnerId} AND c.mode = ${mode}`,
);

interface DayRow {
  day: string;
  closing: string;
  spent: string;
  refunded: string;
}

// A day without a closing is before the first transfer that no closing has, and its balance the last closing's,
// or it is not closed yet, and its balance that of its last entry.
const selectDays = tenantStatement(
  (_, { partnerId, mode, prepaidId }: Tenant & { prepaidId: string }) => sql<DayRow>`
  SELECT to_char(d.day, 'YYYY-MM-DD') AS day,
    CASE WHEN d.day = today.day THEN coalesce(prepaid.posted, 0)
      WHEN first.day IS NULL OR d.day < first.day THEN coalesce(before.closing_cents, 0)
      ELSE coalesce((SELECT e.balance_after FROM ledger.entry e
        WHERE e.account_id = ${prepaidId} AND e.account_version IS NOT NULL
          AND e.account_version = ledger.version_before(${prepaidId}, (d.day + 1)::timestamp AT TIME ZONE 'UTC')), 0) END AS closing,
    coalesce(flow.spent, 0) + coalesce(open.spent, 0) AS spent,
    coalesce(flow.refunded, 0) + coalesce(open.refunded, 0) AS refunded
  FROM (SELECT (account_now(${partnerId}, ${mode}) AT TIME ZONE 'UTC')::date AS day) today
    CROSS JOIN LATERAL (
      SELECT max(day) AS day FROM day_closing WHERE partner_id = ${partnerId} AND mode = ${mode}) closed
    LEFT JOIN LATERAL (
      SELECT (created_at AT TIME ZONE 'UTC')::date AS day FROM ledger.transfer
      WHERE partner_id = ${partnerId} AND mode = ${mode} AND phase IN ('single', 'post')
        AND created_at >= coalesce((closed.day + 1)::timestamp AT TIME ZONE 'UTC', '-infinity')
      ORDER BY created_at LIMIT 1) first ON true
    LEFT JOIN ledger.account prepaid
      ON prepaid.id = ${prepaidId} AND prepaid.partner_id = ${partnerId} AND prepaid.mode = ${mode}
    CROSS JOIN LATERAL (SELECT today.day - n AS day FROM generate_series(0, 29) n) d
    LEFT JOIN LATERAL (
      SELECT * FROM day_closing WHERE partner_id = ${partnerId} AND mode = ${mode} AND day <= d.day
      ORDER BY day DESC LIMIT 1) before ON true
    LEFT JOIN LATERAL (
      SELECT sum(f.cents) FILTER (WHERE f.code IN ('purchase', 'authorization')) AS spent,
        sum(f.cents) FILTER (WHERE f.code = 'refund') AS refunded
      FROM jsonb_to_recordset(before.flows) AS f (code text, cents bigint) WHERE before.day = d.day) flow ON true
    LEFT JOIN LATERAL (
      SELECT sum(spent_cents) AS spent, sum(refunded_cents) AS refunded FROM account_day
      WHERE partner_id = ${partnerId} AND mode = ${mode} AND day = d.day) open ON true
  ORDER BY d.day`,
);
