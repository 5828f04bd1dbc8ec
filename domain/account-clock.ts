/**
 * The clock of an account's test mode, as a transaction holds it (`lock_test_clock` in
 * platform/db/functions): null if it is real time, as it always is in live mode
 * (docs/decisions/sandbox-clock.md).
 */
export type AccountClock = {
  /** How far it is ahead of real time. */
  offsetSeconds: number;
  /**
   * When it was advanced, in real time, the last time first, and how far it was ahead before. It has what came
   * in the two minutes before the last one, because what a request creates may be older than that one.
   */
  advances: readonly { atMs: number; secondsBefore: number }[];
} | null;

/** The last time that our timestamps can express, since their years have four digits. */
export const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z');

/** What time it is, or was at a real time during the request, for the account. */
export function accountTime(clock: AccountClock, at: Date = new Date()): Date {
  if (clock === null) return at;
  const next = clock.advances.findLast(({ atMs }) => atMs > at.getTime());
  return new Date(at.getTime() + 1_000 * (next?.secondsBefore ?? clock.offsetSeconds));
}

/** When it was last advanced, in real time; 0 if never. */
export const lastAdvanceMs = (clock: AccountClock): number => clock?.advances[0]?.atMs ?? 0;

/**
 * What time it is for the account, for its partner to see: never before what the last advance set, also if
 * this host's clock is a little behind that of PostgreSQL, which dated the advance.
 */
export const shownTime = (clock: AccountClock): Date =>
  accountTime(clock, new Date(Math.max(Date.now(), lastAdvanceMs(clock))));
