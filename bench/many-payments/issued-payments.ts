/** How a payment stands: its amount is held, or was taken, or was given back. */
export type Standing = 'held' | 'cleared' | 'reversed';

/** A payment that the issuer and we have differently. */
type Difference = 'never told' | 'clearing not told' | 'reversal not told' | 'not at the issuer';

export const PAYMENT_CENTS = 100;
/** One payment in this many still holds its amount. */
export const HELD_EVERY = 10;
const PERIOD_MS = 6 * 86_400_000;
/** What differs, in the order of the payments' numbers. */
const DIFFERENCES: readonly Difference[] = [
  'never told',
  'clearing not told',
  'reversal not told',
  'not at the issuer',
  'reversal not told',
  'clearing not told',
  'never told',
];

/**
 * Payments of the last six days, numbered by their age from 1, at the same distance from each other. A network
 * makes each when it is asked for.
 */
export class IssuedPayments {
  readonly count: number;
  /** A few payments that differ, by their numbers. */
  readonly differences: ReadonlyMap<number, Difference>;
  /** Until when they hold their amounts, if the network says so. */
  readonly expiresAt = new Date(Date.now() + PERIOD_MS).toISOString();
  readonly #cardTokens: readonly string[];
  readonly #startMs: number;
  readonly #stepMs: number;

  constructor(count: number, cardTokens: readonly string[]) {
    this.count = count;
    this.#cardTokens = cardTokens;
    this.#stepMs = Math.floor(PERIOD_MS / count);
    this.#startMs = Date.now() - PERIOD_MS - 3_600_000;
    this.differences = new Map(
      DIFFERENCES.map((difference, index) => {
        const nth = Math.floor((count * (index + 0.5)) / DIFFERENCES.length);
        // Not one of those that hold their amount anyway.
        return [nth % HELD_EVERY === 0 ? nth + 1 : nth, difference];
      }),
    );
  }

  createdMs = (number: number): number => this.#startMs + number * this.#stepMs;

  cardToken = (number: number): string => this.#cardTokens[number % this.#cardTokens.length] ?? '';

  /** Those that were created between two times, which are exclusive, the newest first, below a number. */
  *newestFirst(beginMs: number, endMs: number, below: number | null): Generator<number> {
    const before = Math.ceil((endMs - this.#startMs) / this.#stepMs);
    const first = Math.max(1, Math.floor((beginMs - this.#startMs) / this.#stepMs) + 1);
    let number = Math.min(before, below ?? Number.POSITIVE_INFINITY, this.count + 1) - 1;
    for (; number >= first; number--) if (this.standing(number) !== null) yield number;
  }

  /** @returns null if the issuer has none */
  standing(number: number): Standing | null {
    const difference = this.differences.get(number);
    if (number < 1 || number > this.count || difference === 'not at the issuer') return null;
    if (difference === 'reversal not told') return 'reversed';
    return number % HELD_EVERY === 0 ? 'held' : 'cleared';
  }
}

/** How long after it was asked for an amount is taken or given back. */
export const UPDATED_AFTER_MS = 60_000;

/** A number as the ids of its payment end with it. */
export const tokenDigits = (number: number): string => String(number).padStart(12, '0');

/** @returns null if the id is no payment's */
export function paymentNumber(id: string | null): number | null {
  const digits = /\d{12}$/.exec(id ?? '')?.[0];
  return digits === undefined ? null : Number(digits);
}

/** A page of numbers, and whether there is another. */
export function takePage(numbers: Iterable<number>, size: number): { page: number[]; hasMore: boolean } {
  const page: number[] = [];
  for (const number of numbers) {
    if (page.length === size) return { page, hasMore: true };
    page.push(number);
  }
  return { page, hasMore: false };
}
