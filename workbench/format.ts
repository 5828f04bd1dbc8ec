/** Money and times as people read them. Money stays in whole cents: nothing here computes with fractions. */

/** `$1,234.50` of 123450 cents; a debit as `−$0.05`. */
export function formatMoney(cents: number): string {
  const digits = String(Math.abs(cents)).padStart(3, '0');
  const dollars = digits.slice(0, -2).replace(/\B(?=(\d{3})+$)/g, ',');
  return `${cents < 0 ? '−' : ''}$${dollars}.${digits.slice(-2)}`;
}

/** A change of a balance: a credit with its sign, too. */
export const formatChange = (cents: number): string => `${cents > 0 ? '+' : ''}${formatMoney(cents)}`;

/** Cents of what a person typed, such as `12`, `1,234.5` or `$5.00`; null if it is no amount in cents. */
export function parseMoney(text: string): number | null {
  const [, dollars, cents = ''] =
    /^\$?(\d{1,9}|\d{1,3}(?:,\d{3}){1,2})(?:\.(\d{1,2}))?$/.exec(text.trim()) ?? [];
  return dollars === undefined ? null : Number(dollars.replaceAll(',', '') + cents.padEnd(2, '0'));
}

const sameYear = new Intl.DateTimeFormat('en-US', {
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
});
const otherYear = new Intl.DateTimeFormat('en-US', {
  year: 'numeric',
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
});

/** `Nov 27, 13:05:12` in the browser's time zone; in another year `Nov 27, 2027, 13:05`. */
export function formatTime(iso: string, now = new Date()): string {
  const time = new Date(iso);
  return (time.getFullYear() === now.getFullYear() ? sameYear : otherYear).format(time);
}

const dayAndMonth = new Intl.DateTimeFormat('en-US', { month: 'short', day: 'numeric', timeZone: 'UTC' });

/** `Nov 27` of `2026-11-27`. The API's days are in UTC. */
export const formatDay = (date: string): string => dayAndMonth.format(new Date(`${date}T00:00:00Z`));

const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
] as const;

/** `2 days 3 hours`: the two largest units that are not zero. */
export function formatDuration(seconds: number): string {
  let left = Math.max(0, Math.floor(seconds));
  const parts = UNITS.flatMap(([unit, length]) => {
    const count = Math.floor(left / length);
    left -= count * length;
    return count === 0 ? [] : [`${count} ${unit}${count === 1 ? '' : 's'}`];
  });
  return parts.slice(0, 2).join(' ') || '0 seconds';
}

/** `Spending limit exceeded` of `spending_limit_exceeded`. */
export function formatCode(code: string): string {
  const words = code.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The number of an overview, which counts up to 1,000. */
export const formatCount = (count: number): string =>
  count >= 1_000 ? '1,000 or more' : count.toLocaleString('en-US');
