/**
 * Where the real time is right: everything else takes the time from `account_now`, `account_time` or `accountTime`
 * (docs/decisions/sandbox-clock.md).
 */
export interface Exception {
  /** A file, or the beginning of a path. */
  path: string;
  /** Which of its lines; all if left out. */
  lines?: RegExp;
  why: string;
}

export const EXCEPTIONS: readonly Exception[] = [
  // What our processes agree on among themselves.
  { path: 'commands/', lines: /lease_expires_at|leaseMs/, why: 'leases' },
  { path: 'commands/monitoring/', why: 'measurements of the whole database' },
  { path: 'commands/key-ring/', why: 'how far the sealing is' },
  { path: 'commands/accounts/active-accounts.ts', why: 'which processes are alive' },
  { path: 'commands/accounts/usage-buckets.ts', why: 'the rate limit' },
  { path: 'commands/reports/transfer-slots.ts', why: 'leases' },
  { path: 'api/http/', why: 'rate limits, caches, the turns of requests, logs' },

  // Idempotency keys are kept, and claims are worked on, in real time.
  {
    path: 'commands/idempotency/abandoned-claims.ts',
    why: 'claims whose process died, and how long keys are kept',
  },
  { path: 'commands/idempotency/respond-once.ts', lines: /responseBody.*now\(\)/, why: 'the end of a lease' },

  {
    path: 'commands/funding/end-issuance.ts',
    lines: /newId\('evt', new Date\(Date\.now\(\) - 1\)\)/,
    why: 'live mode: an id that sorts before the next one',
  },
  {
    path: 'commands/idempotency/network-progress.ts',
    why: 'live mode: when the card network was asked',
  },

  {
    path: 'api/operations.ts',
    lines: /readIdTime/,
    why: 'presentOperation adds what the clock was ahead then',
  },

  // How long events are kept.
  { path: 'api/events.ts', lines: /KEPT_MS/, why: 'events are kept for 30 days of real time' },
  {
    path: 'commands/webhooks/send-on-request.ts',
    lines: /keptDays/,
    why: 'events are kept for 30 days of real time',
  },
  {
    path: 'commands/webhooks/replays.ts',
    lines: /id_time\(now\(\)/,
    why: 'ids have real time',
  },
  {
    path: 'commands/webhooks/continue-replays.ts',
    lines: /id_time\(clock_timestamp\(\)|due_at/,
    why: 'ids have real time, and the pace of a replay is in it',
  },
  {
    path: 'commands/settlement/settle-transactions.ts',
    lines: /newId\('evt', readIdTime/,
    why: 'ids have real time',
  },
  {
    path: 'commands/webhooks/endpoints.ts',
    lines: /readIdTime/,
    why: "account_time() makes it the account's, in the statement",
  },
  {
    path: 'commands/accounts/own-keys.ts',
    lines: /id_time\(now\(\)/,
    why: 'ids have real time',
  },
  {
    path: 'commands/statements/close-days.ts',
    lines: /now\(\) - /,
    why: 'a day is closed an hour of real time after its end',
  },

  // Live mode, or what is between us and the card network or the chain: its clock can't be advanced.
  { path: 'commands/settlement/book-messages.ts', why: 'messages of the card network' },
  { path: 'commands/settlement/kept-messages.ts', why: 'messages of the card network' },
  { path: 'commands/network-events/', why: 'events of the card network' },
  { path: 'commands/reconciliation/', why: 'lists of the card network' },
  { path: 'commands/true-ups/', why: 'what the card network has to move' },
  { path: 'commands/funding/late-answers.ts', why: 'answers of the card network' },
  { path: 'commands/funding/network-card.ts', why: 'answers of the card network' },
  { path: 'commands/funding/resolution.ts', why: 'live mode: operations that wait for the card network' },
  { path: 'commands/funding/decision.ts', why: 'live mode: operations that wait for the card network' },
  { path: 'commands/funding/end-topup.ts', why: 'live mode: top-ups that waited for the card network' },
  { path: 'commands/funding/book-topup.ts', why: 'live mode: top-ups that the card network made after all' },
  {
    path: 'commands/withdrawals/end-withdrawal.ts',
    why: 'live mode: withdrawals that waited for the card network',
  },
  {
    path: 'commands/withdrawals/book-withdrawal.ts',
    why: 'live mode: withdrawals that the card network made after all',
  },
  // Live mode: deposits on a chain, which has its own time.
  { path: 'commands/deposits/chain-scan.ts', why: 'how far the scan of the chain is' },
  { path: 'commands/deposits/open-deposit.ts', why: 'deposits to an address on the chain' },
  { path: 'commands/deposits/take-blocks.ts', why: 'payments on the chain' },
  { path: 'commands/deposits/unconfirmed-payments.ts', why: 'what nodes say of payments on the chain' },
  { path: 'commands/deposits/expire-deposits.ts', why: 'live deposits that nobody paid' },
  { path: 'commands/deposits/watched-deposits.ts', lines: /lease_expires_at|toISOString/, why: 'leases' },
  {
    path: 'commands/deposits/deposit-state.ts',
    lines: /now = new Date\(\)/,
    why: "it becomes each account's time later",
  },

  // What operators did, and when.
  { path: 'commands/accounts/operator-context.ts', why: 'the audit log' },
  { path: 'commands/accounts/partners.ts', why: 'what operators do to an account, which has both modes' },
  { path: 'commands/accounts/api-keys.ts', why: 'what operators do to keys' },
  { path: 'commands/accounts/erase-cardholder.ts', why: 'what operators do to a card' },
  { path: 'commands/products/', why: 'the products of all accounts' },
  {
    path: 'commands/reveals/admit-reveal.ts',
    lines: /created_at > clock_timestamp/,
    why: 'the audit log of refusals',
  },

  // A real time that the same statement or function turns into the account's.
  {
    path: 'commands/authorizations/terms.ts',
    lines: /askedAt = new Date\(\)/,
    why: "it becomes an account's time later",
  },
  { path: 'commands/accounts/test-clock.ts', why: 'when a clock is advanced, and how long ago' },
  { path: 'api/spending-limits.ts', lines: /at = new Date\(\)/, why: "it becomes the account's time later" },
  {
    path: 'commands/settlement/settle-transactions.ts',
    lines: /at = new Date\(\)/,
    why: "it becomes each account's time later",
  },
  {
    path: 'commands/spending-controls/applied-controls.ts',
    lines: /now = new Date\(\)/,
    why: 'the time of an id, which is real',
  },
  {
    path: 'commands/authorizations/expire-due.ts',
    lines: /lag_seconds/,
    why: 'how late the worker is',
  },
  {
    path: 'commands/webhooks/retries.ts',
    lines: /status = 'retrying' AND|WORKFLOW_GRACE/,
    why: 'accounts in real time',
  },
];
