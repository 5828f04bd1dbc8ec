/**
 * The API's operations, by group: the tag that readers see, under the first part of each operation's id,
 * which a generated client turns into `client.cards.create(…)`.
 */
export const TAGS = {
  account: { tag: 'Account', description: 'Check which account and mode an API key belongs to.' },
  overview: { tag: 'Overview', description: 'Your account at a glance.' },
  balance: { tag: 'Balance', description: 'The prepaid balance that funds your cards.' },
  balanceTransactions: {
    tag: 'Balance transactions',
    description: 'Every change to your balance, for reconciliation.',
  },
  products: { tag: 'Products', description: 'The card products your account can issue.' },
  deposits: { tag: 'Deposits', description: 'Fund your live balance with USDT (TRC-20).' },
  quotes: { tag: 'Quotes', description: 'Find out what a card or a top-up costs before you create it.' },
  cards: { tag: 'Cards', description: 'Issue and manage cards, and read their secure details.' },
  topups: { tag: 'Topups', description: 'Move money from your balance to a card.' },
  withdrawals: { tag: 'Withdrawals', description: 'Move money from a card back to your balance.' },
  transactions: { tag: 'Transactions', description: 'Purchases, refunds and declines on your cards.' },
  authorizations: { tag: 'Authorizations', description: 'Money that merchants hold on your cards.' },
  spendingLimits: {
    tag: 'Spending limits',
    description: 'How much your cards can spend, and how much of that they have spent.',
  },
  reports: { tag: 'Reports', description: 'What happened in a period, as CSV.' },
  statements: { tag: 'Statements', description: 'A month of your account: your balance and your cards.' },
  operations: {
    tag: 'Operations',
    description: 'What became of your requests that had an Idempotency-Key. Operations are kept for 30 days.',
  },
  requests: {
    tag: 'Requests',
    description: 'The log of your requests, without anything that a person typed. It is kept for 7 days.',
  },
  apiKeys: {
    tag: 'API keys',
    description: "Manage your account's keys in the mode of the key that you send.",
  },
  workbenchSessions: {
    tag: 'Workbench sessions',
    description: 'Links that open the workbench in a browser.',
  },
  webhookEndpoint: {
    tag: 'Webhook endpoint',
    description:
      'The older way to say where we send the events of each mode. It acts on the oldest endpoint; the paths under ' +
      '`/webhook-endpoints` act on any of them.',
  },
  webhookEndpoints: {
    tag: 'Webhook endpoints',
    description:
      'Up to five places in each mode where we send events, each with its own types, secret and retries.',
  },
  events: {
    tag: 'Events',
    description: 'What happened to your cards and your balance. Events are kept for 30 days.',
  },
  testHelpers: {
    tag: 'Test helpers',
    description:
      'Credit your balance, and simulate transactions and authorizations in test mode. These require a test key.',
  },
} as const;

export type OperationId = `${keyof typeof TAGS}.${string}`;
