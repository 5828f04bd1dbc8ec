import { type AccountClock, accountTime } from '../domain/account-clock.ts';
import {
  type AppliedControls,
  type LimitInterval,
  NO_CONTROLS,
  type SpendingControls,
} from '../domain/spending-controls.ts';

// What restricts a card is read in the statements that read everything else a decision needs, so it takes no
// round trip of its own (docs/decisions/spending-controls.md).

/** Beside a card's row. */
export interface ControlsColumns {
  account_controls: SpendingControls | null;
  /** What `count_spending` or `read_spending` returns; null if there are no limits, or nothing is decided. */
  spending: SpendingRow[] | null;
}

export interface SpendingRow {
  source: 'card' | 'account';
  amount_cents: number;
  every: LimitInterval;
  categories: string[] | null;
  ends_at: string | null;
  net_cents: number;
}

export function appliedControls(
  cardControls: SpendingControls | null,
  { account_controls: accountControls, spending }: ControlsColumns,
): AppliedControls {
  if (cardControls === null && accountControls === null) return NO_CONTROLS;
  return {
    controls: [cardControls, accountControls].filter((controls) => controls !== null),
    limits: (spending ?? []).map(({ source, amount_cents, every, categories, ends_at, net_cents }) => ({
      source,
      amount: amount_cents,
      interval: every,
      categories,
      spentCents: net_cents,
      endsAt: ends_at === null || ends_at === 'infinity' ? null : new Date(ends_at),
    })),
  };
}

/**
 * The time of a decision: when it was asked for, if an interval ended while it waited for its card. Then it
 * counts in that interval, whose spending was read.
 * @param askedAt in real time, as the result
 * @returns undefined for now
 */
export function decisionTime(
  { limits }: AppliedControls,
  askedAt: Date,
  clock: AccountClock,
): Date | undefined {
  const now = accountTime(clock);
  return limits.some(({ endsAt }) => endsAt !== null && endsAt <= now) ? askedAt : undefined;
}
