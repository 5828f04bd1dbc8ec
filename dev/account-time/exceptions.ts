/** Every line of a file. */
const ALL = /^/;

/**
 * Where the real time is right, by the reason: everything else takes the time from `account_now`,
 * `account_time` or `accountTime` (docs/decisions/sandbox-clock.md). Each reason has files, or the beginnings of
 * paths, and which of their lines.
 */
export const EXCEPTIONS: Record<string, Record<string, RegExp>> = {
  // What our processes agree on among themselves.
  leases: {
    '': /lease_expires_at|leaseMs/,
    'requests/respond-once.ts': /responseBody.*now\(\)/,
    'exports/transfer-slots.ts': ALL,
    'deposits/watched-deposits.ts': /lease_expires_at|toISOString/,
  },
  'how long something is waited for': { '': /withDeadline\(|giveUpAt/ },
  'when a job runs again': { '': /nextTime\(/ },
  'how often something is logged': { 'requests/jobs.ts': /nowMs = now/ },
  'measurements of the whole database': { 'exports/check-ledger.ts': ALL },
  'the rate limit, and which processes are alive': { 'accounts/usage.ts': ALL },
  'how long receivers take to respond': { 'webhooks/endpoint-concurrency.ts': ALL },
  'rate limits, caches, the turns of requests, logs': { 'api/http/': ALL },
  'when an attempt was made': { 'webhooks/relay-jobs.ts': /startedAt/ },
  'how late the worker is': { 'payments/expire.ts': /lag_seconds/ },

  "a browser's session lives in real time (docs/partners/workbench.md)": {
    'accounts/workbench-sessions.ts': ALL,
    'accounts/partners.ts': /workbench_session/,
  },
  'a link lives in real time (docs/partners/reveal-links.md)': {
    'cards/reveal-links.ts': ALL,
    'cards/admit-reveal.ts': /opened_at/,
  },
  'the log of requests is in real time (docs/partners/requests.md)': {
    'requests/logged-requests-routes.ts': ALL,
  },
  'claims whose process died, and how long keys are kept': { 'requests/abandoned-claims.ts': ALL },
  'presentOperation adds what the clock was ahead then': { 'requests/': /presentOperation\(row, readIdTime/ },

  // An id has the real time of what it is of.
  'ids have real time': {
    'accounts/request-reads.ts': /readIdTime/,
    'accounts/own-keys.ts': /id_time\(now\(\)/,
    'webhooks/operator.ts': /lowestId\('evt'/,
    'webhooks/replays/start.ts': /id_time\(now\(\)/,
  },
  "transactions are looked through by their ids' time, for longer than clocks differ": {
    'exports/reads.ts': /MAX_CLOCK_DIFFERENCE_MS/,
  },
  'ids have real time, and the pace of a replay is in it': {
    'webhooks/replays/continue.ts': /id_time\(clock_timestamp\(\)|due_at/,
  },
  'events are kept for 30 days of real time': {
    'webhooks/events-routes.ts': /KEPT_MS/,
    'webhooks/send-on-request.ts': /keptDays/,
  },
  'a day is closed an hour of real time after its end': { 'exports/close-days.ts': /now\(\) - / },
  'accounts in real time': { 'webhooks/retries.ts': /status = 'retrying' AND|WORKFLOW_GRACE/ },

  // Live mode, or what is between us and the card network or the chain: its clock can't be advanced.
  'when something is looked at again, and when a read began': {
    'issuers/inbox/': ALL,
    'issuers/reconciliation/take-payment.ts': ALL,
  },
  'lists of the card network': {
    'issuers/reconciliation/compare-all.ts': ALL,
    'issuers/reconciliation/jobs.ts': ALL,
    'issuers/reconciliation/operator.ts': ALL,
    'issuers/reconciliation/findings.ts': ALL,
    'issuers/reconciliation/reconcile.ts': ALL,
    'issuers/reconciliation/seen.ts': ALL,
  },
  'operations that the card network was asked for, or has to make': {
    'requests/network-progress.ts': ALL,
    'issuers/true-ups/true-ups.ts': ALL,
    'cards/late-answers.ts': ALL,
    'cards/network-card.ts': ALL,
    'cards/resolve.ts': ALL,
    'cards/decision.ts': ALL,
    'cards/transfers/end.ts': ALL,
    'cards/transfers/book.ts': ALL,
  },
  'the chain and its payments, and live deposits': {
    'deposits/chain-scan.ts': ALL,
    'deposits/open.ts': ALL,
    'deposits/take-blocks.ts': ALL,
    'deposits/unconfirmed-payments.ts': ALL,
    'deposits/expire.ts': ALL,
  },

  // What operators did, and when.
  'the audit log': {
    'requests/operator-context.ts': ALL,
    'accounts/audit-chain-operator.ts': ALL,
    'cards/admit-reveal.ts': /created_at > clock_timestamp/,
  },
  'what operators do to both modes of an account, to a key or to a card': {
    'accounts/partners.ts': ALL,
    'accounts/api-keys.ts': ALL,
    'cards/erase-cardholder.ts': ALL,
  },
  'the products of all accounts': { 'cards/products.ts': ALL },

  "it becomes an account's time later": {
    'payments/terms.ts': /askedAt: new Date\(\)/,
    'payments/simulate.ts': /askedAt: new Date\(\)/,
    'payments/spending-limits-routes.ts': /at = new Date\(\)/,
    'deposits/deposit-state.ts': /now = new Date\(\)/,
    'webhooks/endpoints.ts': /readIdTime/,
  },
  'when a clock is advanced, and how long ago': { 'accounts/test-clock.ts': ALL },
};
