import type { CardState } from './card-state.ts';
import type { Controls, Interval, Limit, Merchant } from './controls.ts';

// The model's own sums (docs/partners/spending-controls.md): it adds up everything that counts, each time.

interface Asked {
  /** What it adds to what counts. */
  cents: number;
  /** The whole authorization with what was approved of it before, or the purchase. */
  wholeCents: number;
  merchant: Merchant;
  /** The UTC day on which it counts. */
  day: string;
}

/** Why the controls of the card and its account refuse a request; null if they don't. */
export function refusalOf(
  state: CardState,
  accountControls: Controls | null,
  { cents, wholeCents, merchant, day }: Asked,
): string | null {
  const both = [state.controls, accountControls].filter((controls) => controls !== null);
  for (const { allowed_categories, blocked_categories } of both) {
    if (isRefused(merchant.category_code, allowed_categories, blocked_categories))
      return 'merchant_category_not_allowed';
  }
  for (const { allowed_merchant_countries, blocked_merchant_countries } of both) {
    if (isRefused(merchant.country, allowed_merchant_countries, blocked_merchant_countries))
      return 'merchant_country_not_allowed';
  }
  if (cents <= 0) return null;
  for (const limit of both.flatMap(({ spending_limits }) => spending_limits ?? [])) {
    if (!countsFor(limit, merchant.category_code)) continue;
    const isExceeded =
      limit.interval === 'per_authorization'
        ? wholeCents > limit.amount
        : spentOf(state, limit, day) + cents > limit.amount;
    if (isExceeded) return 'spending_limit_exceeded';
  }
  return null;
}

export function sameControls(one: Controls | null, other: Controls | null): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** What GET /cards/{id}/spending-limits shows on a UTC day. */
export function limitsOn(state: CardState, accountControls: Controls | null, day: string): object[] {
  const show = (source: 'card' | 'account', controls: Controls | null) =>
    (controls?.spending_limits ?? []).map((limit) => {
      const { amount, interval, categories } = limit;
      const spent = interval === 'per_authorization' ? 0 : spentOf(state, limit, day);
      const remaining = Math.max(0, amount - spent);
      const resets_at = nextStart(interval, day);
      return { object: 'spending_limit', source, amount, interval, categories, spent, remaining, resets_at };
    });
  return [...show('card', state.controls), ...show('account', accountControls)];
}

/** Counts a purchase without an authorization or, below zero, a refund. */
export function buy(
  state: CardState,
  id: string,
  bought: { day: string; category: string | null; cents: number },
): CardState {
  // Sorted, since states are compared as text.
  const all = Object.entries({ ...state.bought, [id]: bought }).sort(([one], [other]) =>
    one < other ? -1 : 1,
  );
  return { ...state, bought: Object.fromEntries(all) };
}

/** The authorization that the purchase turned out to belong to counts it. */
export function unbuy(state: CardState, id: string): CardState {
  const { [id]: _, ...bought } = state.bought;
  return { ...state, bought };
}

function isRefused(
  code: string | null,
  allowed: readonly string[] | null,
  blocked: readonly string[] | null,
): boolean {
  if (allowed !== null) return code === null || !allowed.includes(code);
  return blocked !== null && code !== null && blocked.includes(code);
}

function countsFor({ categories }: Limit, category: string | null): boolean {
  return categories === null || (category !== null && categories.includes(category));
}

function spentOf(state: CardState, limit: Limit, day: string): number {
  const start = startOf(limit.interval, day);
  const counted = state.authorizations
    .filter(({ status }) => status !== 'declined')
    .map(({ id, status, amount, settled, merchant, day: created }) => ({
      id,
      day: created,
      category: merchant.category_code,
      cents: status === 'pending' ? Math.max(amount, settled) : settled,
    }))
    .concat(Object.entries(state.bought).map(([id, bought]) => ({ id, ...bought })));
  const order = ({ id }: { id: string }) => id.slice(id.indexOf('_'));
  return counted
    .filter((one) => startOf(limit.interval, one.day) === start && countsFor(limit, one.category))
    .sort((one, other) => (order(one) < order(other) ? -1 : 1))
    .reduce((spent, { cents }) => Math.max(0, spent + cents), 0);
}

/** The first day of the interval, or as much of it as names the interval. */
function startOf(interval: Interval, day: string): string {
  switch (interval) {
    case 'weekly': {
      const sinceMonday = (new Date(day).getUTCDay() + 6) % 7;
      return addDays(day, -sinceMonday);
    }
    case 'monthly':
      return day.slice(0, 7);
    case 'yearly':
      return day.slice(0, 4);
    case 'all_time':
      return '';
    default:
      return day;
  }
}

function nextStart(interval: Interval, day: string): string | null {
  const [year = 0, month = 0] = day.split('-').map(Number);
  switch (interval) {
    case 'daily':
      return `${addDays(day, 1)}T00:00:00.000Z`;
    case 'weekly':
      return `${addDays(startOf('weekly', day), 7)}T00:00:00.000Z`;
    case 'monthly':
      return new Date(Date.UTC(year, month, 1)).toISOString();
    case 'yearly':
      return `${year + 1}-01-01T00:00:00.000Z`;
    default:
      return null;
  }
}

function addDays(day: string, days: number): string {
  return new Date(Date.parse(day) + days * 86_400_000).toISOString().slice(0, 10);
}
