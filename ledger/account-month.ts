import { sql } from 'kysely';
import { type Reader, tenantStatement } from '../db/sql.ts';
import type { Row } from '../db/tables.ts';
import type { Tenant } from '../domain/mode.ts';
import type { TransferCode } from './posting.ts';

/** A month of an account: what was there when it began and when it ended, and what was booked in it. Amounts are in cents. */
export interface AccountMonth {
  openingCents: number;
  closingCents: number;
  /** What changed the balance, by code. Credits are above zero, debits below. */
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
  /** The transfers behind it. */
  flows: Flow[];
}

type Flow = Row<'month_closing', 'flows'>['flows'][number];

const MONTH = /^(?!0000)\d{4}-(0[1-9]|1[0-2])$/;

/**
 * A month of an account, up to now if it is the current one: its closing, or else the last closing before it with the transfers
 * since then (docs/decisions/statements.md).
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
  const [last] = await selectLastClosing(em, tenant, { firstDay });
  if (last === undefined) return null;
  if (last.is_this_month) {
    return toMonth(Number(last.opening_cents), Number(last.cards_opening_cents), last.flows ?? []);
  }
  const rows = await selectFlows(em, tenant, { firstDay, from: last.closed_until });
  const flows = (isEarlier: boolean): Flow[] =>
    rows
      .filter((row) => row.is_earlier === isEarlier)
      .map(({ code, count, cents }) => ({ code, count: Number(count), cents: Number(cents) }));
  const opening = toMonth(
    Number(last.closing_cents ?? 0),
    Number(last.cards_closing_cents ?? 0),
    flows(true),
  );
  return toMonth(opening.closingCents, opening.cards.closingCents, flows(false));
}

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
    flows,
  };
}

interface LastClosing {
  is_this_month: boolean;
  /** The end of the month that it closes; null if there is none. */
  closed_until: string | null;
  flows: Flow[] | null;
  opening_cents: string | null;
  closing_cents: string | null;
  cards_opening_cents: string | null;
  cards_closing_cents: string | null;
}

// No row if the month has not begun.
const selectLastClosing = tenantStatement(
  (_, { partnerId, mode, firstDay }: Tenant & { firstDay: string }) => sql<LastClosing>`
  SELECT coalesce(c.month = ${firstDay}::date, false) AS is_this_month,
    (c.month + interval '1 month') AT TIME ZONE 'UTC' AS closed_until, c.flows,
    c.opening_cents, c.closing_cents, c.cards_opening_cents, c.cards_closing_cents
  FROM (SELECT WHERE ${firstDay}::timestamp AT TIME ZONE 'UTC' <= account_now(${partnerId}, ${mode})) begun LEFT JOIN LATERAL (
    SELECT * FROM month_closing WHERE partner_id = ${partnerId} AND mode = ${mode} AND month <= ${firstDay}::date
    ORDER BY month DESC LIMIT 1) c ON true`,
);

// One statement, so one snapshot. The index has all that it reads.
const selectFlows = tenantStatement(
  (_, { partnerId, mode, firstDay, from }: Tenant & { firstDay: string; from: string | null }) => sql<{
    is_earlier: boolean;
    code: string;
    count: string;
    cents: string;
  }>`
  SELECT created_at < ${firstDay}::timestamp AT TIME ZONE 'UTC' AS is_earlier, code, count(*) AS count, sum(amount) AS cents
  FROM ledger.transfer
  WHERE partner_id = ${partnerId} AND mode = ${mode} AND phase IN ('single', 'post')
    AND created_at >= coalesce(${from}::timestamptz, '-infinity')
    AND created_at < (${firstDay}::timestamp + interval '1 month') AT TIME ZONE 'UTC'
  GROUP BY is_earlier, code ORDER BY is_earlier, code`,
);
