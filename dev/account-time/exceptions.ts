/**
 * Where the real time is right: everything else takes the time from `account_now`, `account_time` or
 * `accountTime` (docs/decisions/sandbox-clock.md).
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
  { path: '', lines: /lease_expires_at|leaseMs/, why: 'leases' },
  { path: '', lines: /withDeadline\(|giveUpAt/, why: 'how long something is waited for' },
  { path: '', lines: /nextTime\(/, why: 'when a job runs again' },
  { path: 'requests/jobs.ts', lines: /nowMs = now/, why: 'how often something is logged' },
  { path: 'exports/check-ledger.ts', why: 'measurements of the whole database' },
  { path: 'accounts/usage.ts', why: 'the rate limit, and which processes are alive' },
  { path: 'exports/transfer-slots.ts', why: 'leases' },
  { path: 'webhooks/endpoint-concurrency.ts', why: 'how long receivers take to respond' },
  { path: 'api/http/', why: 'rate limits, caches, the turns of requests, logs' },

  {
    path: 'accounts/workbench-sessions.ts',
    why: "a browser's session lives in real time (docs/partners/workbench.md)",
  },
  { path: 'cards/reveal-links.ts', why: 'a link lives in real time (docs/partners/reveal-links.md)' },
  { path: 'cards/admit-reveal.ts', lines: /opened_at/, why: 'likewise' },
  { path: 'accounts/partners.ts', lines: /workbench_session/, why: 'likewise' },

  {
    path: 'requests/logged-requests-routes.ts',
    why: 'the log of requests is in real time (docs/partners/requests.md)',
  },

  // Idempotency keys are kept, and claims are worked on, in real time.
  {
    path: 'requests/abandoned-claims.ts',
    why: 'claims whose process died, and how long keys are kept',
  },
  { path: 'requests/respond-once.ts', lines: /responseBody.*now\(\)/, why: 'the end of a lease' },
  {
    path: 'requests/network-progress.ts',
    why: 'live mode: when the card network was asked',
  },

  {
    path: 'requests/',
    lines: /presentOperation\(row, readIdTime/,
    why: 'presentOperation adds what the clock was ahead then',
  },

  // An id has the real time of what it is of.
  { path: 'accounts/request-reads.ts', lines: /readIdTime/, why: 'ids have real time' },
  {
    path: 'exports/reads.ts',
    lines: /MAX_CLOCK_DIFFERENCE_MS/,
    why: "transactions are looked through by their ids' time, for longer than clocks differ",
  },
  { path: 'webhooks/operator.ts', lines: /lowestId\('evt'/, why: 'ids have real time' },
  { path: 'webhooks/relay-jobs.ts', lines: /startedAt/, why: 'when an attempt was made' },

  // Issuers' payments are live, and so are the leases on them.
  { path: 'issuers/inbox/', why: 'live mode: when something is looked at again, and when a read began' },
  {
    path: 'payments/take-messages.ts',
    lines: /at: new Date\(\)\.toISOString\(\)/,
    why: 'account_time makes the time of each account from it',
  },

  // How long events are kept.
  { path: 'webhooks/events-routes.ts', lines: /KEPT_MS/, why: 'events are kept for 30 days of real time' },
  {
    path: 'webhooks/send-on-request.ts',
    lines: /keptDays/,
    why: 'events are kept for 30 days of real time',
  },
  {
    path: 'webhooks/replays/start.ts',
    lines: /id_time\(now\(\)/,
    why: 'ids have real time',
  },
  {
    path: 'webhooks/replays/continue.ts',
    lines: /id_time\(clock_timestamp\(\)|due_at/,
    why: 'ids have real time, and the pace of a replay is in it',
  },
  {
    path: 'webhooks/endpoints.ts',
    lines: /readIdTime/,
    why: "account_time() makes it the account's, in the statement",
  },
  {
    path: 'accounts/own-keys.ts',
    lines: /id_time\(now\(\)/,
    why: 'ids have real time',
  },
  {
    path: 'exports/close-days.ts',
    lines: /now\(\) - /,
    why: 'a day is closed an hour of real time after its end',
  },

  // Live mode, or what is between us and the card network or the chain: its clock can't be advanced.
  { path: 'issuers/reconciliation/compare-all.ts', why: 'lists of the card network' },
  { path: 'issuers/reconciliation/take-payment.ts', why: 'when a read at the card network began' },
  { path: 'issuers/reconciliation/jobs.ts', why: 'lists of the card network' },
  { path: 'issuers/reconciliation/operator.ts', why: 'lists of the card network' },
  { path: 'issuers/reconciliation/findings.ts', why: 'lists of the card network' },
  { path: 'issuers/reconciliation/reconcile.ts', why: 'lists of the card network' },
  { path: 'issuers/reconciliation/seen.ts', why: 'lists of the card network' },
  { path: 'issuers/true-ups/true-ups.ts', why: 'what the card network has to move' },
  { path: 'cards/late-answers.ts', why: 'answers of the card network' },
  { path: 'cards/network-card.ts', why: 'answers of the card network' },
  { path: 'cards/resolve.ts', why: 'live mode: operations that wait for the card network' },
  { path: 'cards/decision.ts', why: 'live mode: operations that wait for the card network' },
  { path: 'cards/transfers/end.ts', why: 'live mode: transfers that waited for the card network' },
  { path: 'cards/transfers/book.ts', why: 'live mode: transfers that the card network made after all' },
  // Live mode: deposits on a chain, which has its own time.
  { path: 'deposits/chain-scan.ts', why: 'how far the scan of the chain is' },
  { path: 'deposits/open.ts', why: 'deposits to an address on the chain' },
  { path: 'deposits/take-blocks.ts', why: 'payments on the chain' },
  { path: 'deposits/unconfirmed-payments.ts', why: 'what nodes say of payments on the chain' },
  { path: 'deposits/expire.ts', why: 'live deposits that nobody paid' },
  { path: 'deposits/watched-deposits.ts', lines: /lease_expires_at|toISOString/, why: 'leases' },
  {
    path: 'deposits/deposit-state.ts',
    lines: /now = new Date\(\)/,
    why: "it becomes each account's time later",
  },

  // What operators did, and when.
  { path: 'requests/operator-context.ts', why: 'the audit log' },
  { path: 'accounts/audit-chain-operator.ts', why: 'the audit log' },
  { path: 'accounts/partners.ts', why: 'what operators do to an account, which has both modes' },
  { path: 'accounts/api-keys.ts', why: 'what operators do to keys' },
  { path: 'cards/erase-cardholder.ts', why: 'what operators do to a card' },
  { path: 'cards/products.ts', why: 'the products of all accounts' },
  {
    path: 'cards/admit-reveal.ts',
    lines: /created_at > clock_timestamp/,
    why: 'the audit log of refusals',
  },

  // A real time that the same statement or function turns into the account's.
  {
    path: 'payments/terms.ts',
    lines: /askedAt = new Date\(\)/,
    why: "it becomes an account's time later",
  },
  { path: 'accounts/test-clock.ts', why: 'when a clock is advanced, and how long ago' },
  {
    path: 'payments/spending-limits-routes.ts',
    lines: /at = new Date\(\)/,
    why: "it becomes the account's time later",
  },
  {
    path: 'cards/applied-controls.ts',
    lines: /now = new Date\(\)/,
    why: 'the time of an id, which is real',
  },
  {
    path: 'payments/expire.ts',
    lines: /lag_seconds/,
    why: 'how late the worker is',
  },
  {
    path: 'webhooks/retries.ts',
    lines: /status = 'retrying' AND|WORKFLOW_GRACE/,
    why: 'accounts in real time',
  },
];
