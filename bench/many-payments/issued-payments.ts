import type { Transaction } from '../../dev/lithic/objects.ts';
import { makeCard, makeEvent, makeTransaction } from '../../dev/lithic/objects.ts';

/** How a payment stands: its amount is held, or was taken, or was given back. */
type Standing = 'held' | 'cleared' | 'reversed';

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
 * Payments of the last six days, numbered by their age from 1, at the same distance from each other. Each is
 * made when it is asked for.
 */
export class IssuedPayments {
  readonly count: number;
  /** A few payments that differ, by their numbers. */
  readonly differences: ReadonlyMap<number, Difference>;
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
  *newestFirst(beginMs: number, endMs: number, below: number | null): Generator<Transaction> {
    const before = Math.ceil((endMs - this.#startMs) / this.#stepMs);
    const first = Math.max(1, Math.floor((beginMs - this.#startMs) / this.#stepMs) + 1);
    let number = Math.min(before, below ?? Number.POSITIVE_INFINITY, this.count + 1) - 1;
    for (; number >= first; number--) {
      const payment = this.find(number);
      if (payment !== null) yield payment;
    }
  }

  /** @returns null if the issuer has none */
  find(number: number): Transaction | null {
    const difference = this.differences.get(number);
    if (difference === 'not at the issuer') return null;
    return this.make(number, difference === 'reversal not told' ? 'reversed' : this.#standing(number));
  }

  make(number: number, standing: Standing): Transaction {
    const createdMs = this.createdMs(number);
    const at = (afterMs: number) => new Date(createdMs + afterMs);
    const card = { ...CARD, token: this.cardToken(number) };
    const made: Transaction = { ...makeTransaction(card, {}, at(0)), token: paymentToken(number) };
    const ask = { type: 'AUTHORIZATION', amount: PAYMENT_CENTS, token: elementToken(1, number) } as const;
    made.events.push(makeEvent(ask, at(0)));
    if (standing === 'held') made.amounts.hold.amount = PAYMENT_CENTS;
    else {
      const type = standing === 'cleared' ? 'CLEARING' : 'AUTHORIZATION_REVERSAL';
      made.events.push(makeEvent({ ...ask, type, token: elementToken(2, number) }, at(UPDATED_AFTER_MS)));
    }
    made.updated = at(standing === 'held' ? 0 : UPDATED_AFTER_MS).toISOString();
    return made;
  }

  #standing = (number: number): Standing => (number % HELD_EVERY === 0 ? 'held' : 'cleared');
}

/** How long after it was asked for an amount is taken or given back. */
export const UPDATED_AFTER_MS = 60_000;
const CARD = makeCard({}, new Date());
const PAYMENT_TOKEN = /^00000000-0000-4000-8000-(\d{12})$/;

/** A number as the tokens of its payment have it. */
export const tokenDigits = (number: number): string => String(number).padStart(12, '0');
const elementToken = (kind: number, number: number): string =>
  `0000000${kind}-0000-4000-8000-${tokenDigits(number)}`;
export const paymentToken = (number: number): string => elementToken(0, number);

/** @returns null if it is no payment's token */
export function paymentNumber(token: string): number | null {
  const digits = PAYMENT_TOKEN.exec(token)?.[1];
  return digits === undefined ? null : Number(digits);
}
