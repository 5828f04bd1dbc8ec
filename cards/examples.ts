import type {
  CardResource,
  CreateCardRequest,
  SpendingLimitResource,
  UpdateCardRequest,
} from './resource.ts';
import type { TopUpResource, WithdrawalResource } from './transfers/resource.ts';

// Real responses to a sequence of requests, as the API reference shows them.

export const PRODUCT = { product_code: 'TEST-USD', bin: '424242', network: 'visa' };

export const CREATE_CARD: CreateCardRequest = {
  amount: 5_000,
  external_ref: 'order-4711',
  card_name: 'Ads',
  cardholder_first_name: 'Ada',
  cardholder_last_name: 'Lovelace',
  email: 'ada@example.com',
  metadata: { team: 'marketing' },
  spending_controls: { spending_limits: [{ amount: 10_000, interval: 'monthly' }] },
};

export const CARD: CardResource = {
  id: 'card_01m81020qvkyxj583kerfehgpc',
  object: 'card',
  status: 'active',
  balance: 5_000,
  available_balance: 5_000,
  currency: 'USD',
  external_ref: 'order-4711',
  card_name: 'Ads',
  cardholder_first_name: 'Ada',
  cardholder_last_name: 'Lovelace',
  email: 'ada@example.com',
  metadata: { team: 'marketing' },
  spending_controls: {
    allowed_categories: null,
    blocked_categories: null,
    allowed_merchant_countries: null,
    blocked_merchant_countries: null,
    spending_limits: [{ amount: 10_000, interval: 'monthly', categories: null }],
  },
  product_code: 'TEST-USD',
  network: 'visa',
  last4: '5632',
  exp_month: 10,
  exp_year: 2031,
  mode: 'test',
  failure_code: null,
  created: '2026-11-22T06:45:50.459Z',
};

export const PENDING_CARD: CardResource = {
  ...CARD,
  id: 'card_01m8102545dbxq176nvw1atk3a',
  status: 'funding_pending',
  balance: 0,
  available_balance: 0,
  last4: null,
  exp_month: null,
  exp_year: null,
  mode: 'live',
  created: '2026-11-22T06:45:54.949Z',
};

export const FAILED_CARD: CardResource = {
  ...PENDING_CARD,
  status: 'failed',
  failure_code: 'issuance_failed',
};

export const FROZEN_CARD: CardResource = { ...CARD, status: 'frozen' };

export const BLOCKED_CARD: CardResource = { ...CARD, status: 'blocked', balance: 0, available_balance: 0 };

export const UPDATE_CARD: UpdateCardRequest = {
  card_name: 'Ads 2027',
  metadata: { campaign: 'spring', team: null },
};

export const UPDATED_CARD: CardResource = {
  ...CARD,
  card_name: 'Ads 2027',
  metadata: { campaign: 'spring' },
};

export const SPENDING_LIMIT: SpendingLimitResource = {
  object: 'spending_limit',
  source: 'card',
  amount: 10_000,
  interval: 'monthly',
  categories: null,
  spent: 1_250,
  remaining: 8_750,
  resets_at: '2026-12-01T00:00:00.000Z',
};

export const REVEAL_LINK = {
  id: 'rvl_01m81025v7x2z4q6w8e1r3t5yh',
  object: 'reveal_link',
  card_id: CARD.id,
  url: 'https://api.example.com/reveal/rvl_01m81025v7x2z4q6w8e1r3t5yh#EXAMPLE-TOKEN-EXAMPLE-TOKEN-EXAMPLE-TOKEN-E',
  expires_at: '2026-11-22T06:50:54.719Z',
  mode: 'test',
} as const;

export const SECURE_DETAILS = {
  card_id: CARD.id,
  pan: '4242801506965632',
  cvv: '130',
  exp_month: '10',
  exp_year: '2031',
  cardholder_name: 'Ada Lovelace',
};

export const TOPUP: TopUpResource = {
  id: 'topup_01m81020xw82ckyg63jwrcs1h5',
  object: 'topup',
  card_id: CARD.id,
  amount: 2_500,
  fees: [{ type: 'card_funding', amount: 50 }],
  total_debited: 2_550,
  status: 'succeeded',
  failure_code: null,
  card_balance: 7_500,
  mode: 'test',
  created: '2026-11-22T06:45:50.652Z',
  completed_at: '2026-11-22T06:45:50.663Z',
};

export const PENDING_TOPUP: TopUpResource = {
  ...TOPUP,
  status: 'pending',
  card_balance: 5_000,
  mode: 'live',
  completed_at: null,
};

export const FAILED_TOPUP: TopUpResource = {
  ...TOPUP,
  status: 'failed',
  failure_code: 'topup_failed',
  card_balance: 5_000,
  mode: 'live',
};

export const WITHDRAWAL: WithdrawalResource = {
  id: 'wdr_01m81021hq5v8tq0w2c7m4xk3n',
  object: 'withdrawal',
  card_id: CARD.id,
  amount: 2_000,
  status: 'succeeded',
  failure_code: null,
  card_balance: 3_000,
  mode: 'test',
  created: '2026-11-22T06:45:51.284Z',
  completed_at: '2026-11-22T06:45:51.291Z',
};

export const PENDING_WITHDRAWAL: WithdrawalResource = {
  ...WITHDRAWAL,
  status: 'pending',
  card_balance: 5_000,
  mode: 'live',
  completed_at: null,
};

export const FAILED_WITHDRAWAL: WithdrawalResource = {
  ...WITHDRAWAL,
  status: 'failed',
  failure_code: 'withdrawal_failed',
  card_balance: 5_000,
  mode: 'live',
};
