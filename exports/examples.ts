import type { OverviewResource } from './overview-resource.ts';
import type { StatementResource } from './statement-resource.ts';

// Real responses to a sequence of requests, as the API reference shows them.

export const STATEMENT: StatementResource = {
  object: 'statement',
  month: '2026-10',
  opening_balance: 120_000,
  closing_balance: 262_350,
  lines: [
    { type: 'deposit', count: 1, amount: 250_000 },
    { type: 'card_issue', count: 2, amount: -100_000 },
    { type: 'card_withdrawal', count: 1, amount: 5_000 },
    { type: 'card_activation_fee', count: 2, amount: -600 },
    { type: 'card_funding_fee', count: 2, amount: -12_000 },
    { type: 'transaction_fee', count: 1, amount: -50 },
  ],
  cards: {
    opening_balance: 40_000,
    loaded: 100_000,
    spent: 61_200,
    refunded: 1_200,
    released: 5_000,
    closing_balance: 75_000,
  },
  mode: 'live',
};

export const OVERVIEW: OverviewResource = {
  object: 'overview',
  cards: { funding_pending: 1, active: 12, frozen: 2, blocked: 5, failed: 0 },
  days: [
    { date: '2026-11-21', closing_balance: 250_000, spent: 12_400, refunded: 0 },
    { date: '2026-11-22', closing_balance: 244_800, spent: 3_150, refunded: 500 },
  ],
  pending_operations: 1,
  deposits_waiting: 2,
  mode: 'live',
};
