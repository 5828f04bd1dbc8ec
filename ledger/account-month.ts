import { sql } from 'kysely';
import type { Tenant } from '../domain/mode.ts';
import type { Row } from '../platform/db/entities.ts';
import { type Reader, tenantStatement } from '../platform/db/sql.ts';
import type { TransferCode } from './posting.ts';

/**
 * A month of an account: what was there when it began and when it ended, and what was booked in it. Amounts
 * are in cents.
 */
export interface AccountMonth {
  openingCents: number;
  closingCents: number;
  /** What changed the balance, by day and code. Credits are above zero, debits below. */
  lines: { code: TransferCode; count: number; cents: number }[];
  /** All cards together. */
  cards: {
    openingCents: number;
    loadedCents: number;
    spentCents: number;
    refundedCents: number;
    /** Moved back to the balance, by blocks and withdrawals. */
    releasedCents: number;
    closingCents: number;
  };
}

type Flow = Row<'day_closing', 'flows'>['flows'][number];

const MONTH = /^(?!0000)\d{4}-(0[1-9]|1[0-2])$/;

/**
 * A month of an account, up to now if it is the current one: the closings of its days, and the transfers
 * since the last closing (docs/decisions/statements.md).
 * @param month `YYYY-MM`, in UTC and the account's time
 * @returns null if it is no month, or has not begun
 */
export async function readAccountMonth(
  em: Reader,
  tenant: Tenant,
  month: string,
): Promise<AccountMonth | null> {
  if (!MONTH.test(month)) return null;
  const firstDay = `${month}-01`;
  const closings = await selectClosings(em, tenant, { firstDay });
  if (closings.length === 0) return null;
  const before = closings.find(({ is_earlier }) => is_earlier);
  const from = closings.at(-1)?.closed_until ?? null;
  const flows = await selectFlows(em, tenant, { firstDay, from });
  const opening = toMonth(
    Number(before?.closing_cents ?? 0),
    Number(before?.cards_closing_cents ?? 0),
    flows.filter(({ is_earlier }) => is_earlier).map(toFlow),
  );
  const closed = closings.filter(({ is_earlier }) => !is_earlier).flatMap((day) => day.flows ?? []);
  const open = flows.filter(({ is_earlier }) => !is_earlier).map(toFlow);
  return toMonth(opening.closingCents, opening.cards.closingCents, [...closed, ...open]);
}

/**
 * What the closing of a day says: its transfers, and the balances that it left.
 * @param day `YYYY-MM-DD`, in UTC and the account's time: the first one with a transfer after the last
 * closing
 */
export async function readDayToClose(
  em: Reader,
  tenant: Tenant,
  day: string,
): Promise<{ flows: Flow[]; closingCents: number; cardsClosingCents: number }> {
  const [last] = await selectClosingBefore(em, tenant, { day });
  const flows = (await selectFlowsOfDay(em, tenant, { day })).map(toFlow);
  const { closingCents, cards } = toMonth(
    Number(last?.closing_cents ?? 0),
    Number(last?.cards_closing_cents ?? 0),
    flows,
  );
  return { flows, closingCents, cardsClosingCents: cards.closingCents };
}

const toFlow = ({ code, count, cents }: FlowRow): Flow => ({
  code,
  count: Number(count),
  cents: Number(cents),
});

function toMonth(openingCents: number, cardsOpeningCents: number, flows: Flow[]): AccountMonth {
  const lines: AccountMonth['lines'] = [];
  const cards = { loadedCents: 0, spentCents: 0, refundedCents: 0, releasedCents: 0 };
  let closingCents = openingCents;
  for (const { code: text, count, cents } of flows) {
    const code = text as TransferCode;
    switch (code) {
      case 'fund_faucet':
      case 'fund_usdt':
      case 'fund_test_usdt':
      case 'late_refund':
      case 'adjustment_credit':
        lines.push({ code, count, cents });
        closingCents += cents;
        break;
      case 'fee_activation':
      case 'fee_funding':
      case 'fee_transaction':
      case 'fee_decline':
      case 'late_debit':
      case 'adjustment_debit':
        lines.push({ code, count, cents: -cents });
        closingCents -= cents;
        break;
      case 'issue_load':
      case 'topup':
        lines.push({ code, count, cents: -cents });
        closingCents -= cents;
        cards.loadedCents += cents;
        break;
      case 'withdrawal':
      case 'block_release':
        lines.push({ code, count, cents });
        closingCents += cents;
        cards.releasedCents += cents;
        break;
      case 'purchase':
      case 'authorization':
        cards.spentCents += cents;
        break;
      case 'refund':
        cards.refundedCents += cents;
        break;
      default:
        throw new Error(`a statement does not know the code ${code satisfies never}`);
    }
  }
  const { loadedCents, spentCents, refundedCents, releasedCents } = cards;
  return {
    openingCents,
    closingCents,
    lines,
    cards: {
      openingCents: cardsOpeningCents,
      ...cards,
      closingCents: cardsOpeningCents + loadedCents - spentCents + refundedCents - releasedCents,
    },
  };
}

interface ClosingRow {
  is_earlier: boolean | null;
  /** The end of the day that it closes; null if there is none. */
  closed_until: string | null;
  flows: Flow[] | null;
  closing_cents: string | null;
  cards_closing_cents: string | null;
}

// The last closing before the month, and those in it. One row without any if there is none, and no row if the
// month has not begun.
const selectClosings = tenantStatement(
  (_, { partnerId, mode, firstDay }: Tenant & { firstDay: string }) => sql<ClosingRow>`
  SELECT c.day < ${firstDay}::date AS is_earlier, (c.day + 1)::timestamp AT TIME ZONE 'UTC' AS closed_until,
    c.flows, c.closing_cents, c.cards_closing_cents
  FROM (SELECT WHERE ${firstDay}::timestamp AT TIME ZONE 'UTC' <= account_now(${partnerId}, ${mode})) begun
    LEFT JOIN LATERAL (
    (SELECT * FROM day_closing WHERE partner_id = ${partnerId} AND mode = ${mode} AND day < ${firstDay}::date
      ORDER BY day DESC LIMIT 1)
    UNION ALL
    SELECT * FROM day_closing WHERE partner_id = ${partnerId} AND mode = ${mode} AND day >= ${firstDay}::date
      AND day < ${firstDay}::date + interval '1 month') c ON true
  ORDER BY c.day`,
);

const selectClosingBefore = tenantStatement((db, { partnerId, mode, day }: Tenant & { day: string }) =>
  db
    .selectFrom('day_closing')
    .select(['closing_cents', 'cards_closing_cents'])
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .where('day', '<', day)
    .orderBy('day', 'desc')
    .limit(1),
);

interface FlowRow {
  code: string;
  count: string;
  cents: string;
}

// One statement, so one snapshot. The index has all that it reads.
const selectFlows = tenantStatement(
  (_, { partnerId, mode, firstDay, from }: Tenant & { firstDay: string; from: string | null }) => sql<
    FlowRow & { is_earlier: boolean }
  >`
  SELECT created_at < ${firstDay}::timestamp AT TIME ZONE 'UTC' AS is_earlier, code,
    count(*) AS count, sum(amount) AS cents
  FROM ledger.transfer
  WHERE partner_id = ${partnerId} AND mode = ${mode} AND phase IN ('single', 'post')
    AND created_at >= coalesce(${from}::timestamptz, '-infinity')
    AND created_at < (${firstDay}::timestamp + interval '1 month') AT TIME ZONE 'UTC'
  GROUP BY is_earlier, code ORDER BY is_earlier, code`,
);

const selectFlowsOfDay = tenantStatement(
  (_, { partnerId, mode, day }: Tenant & { day: string }) => sql<FlowRow>`
  SELECT code, count(*) AS count, sum(amount) AS cents
  FROM ledger.transfer
  WHERE partner_id = ${partnerId} AND mode = ${mode} AND phase IN ('single', 'post')
    AND created_at >= ${day}::timestamp AT TIME ZONE 'UTC'
    AND created_at < (${day}::timestamp + interval '1 day') AT TIME ZONE 'UTC'
  GROUP BY code ORDER BY code`,
);
