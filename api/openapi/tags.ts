/**
 * What the API's operations are grouped by: the tag a reader sees, and the first part of each operation's id, which a
 * generated client turns into `client.cards.create(…)`.
 */
export const TAGS = {
  account: { tag: 'Account', description: 'Check which account and mode an API key belongs to.' },
  balance: { tag: 'Balance', description: 'The prepaid balance that funds your cards.' },
  balanceTransactions: {
    tag: 'Balance transactions',
    description: 'Every change of your balance, for reconciliation.',
  },
  products: { tag: 'Products', description: 'The card products your account can issue.' },
  deposits: { tag: 'Deposits', description: 'Fund your live balance with USDT (TRC-20).' },
  quotes: { tag: 'Quotes', description: 'See what a card or a top-up costs before you ask for it.' },
  cards: { tag: 'Cards', description: 'Issue cards, look after them, and read their details.' },
  topups: { tag: 'Topups', description: 'Move money from your balance to a card.' },
  transactions: { tag: 'Transactions', description: 'What a card was used for, declines included.' },
  webhookEndpoint: { tag: 'Webhook endpoint', description: 'Where we send the events of a mode.' },
  events: {
    tag: 'Events',
    description: 'What happened to your cards and your balance. Events are kept for 30 days.',
  },
  testHelpers: {
    tag: 'Test helpers',
    description: 'Make things happen in test mode. These need a test key.',
  },
} as const;

export type OperationId = `${keyof typeof TAGS}.${string}`;
