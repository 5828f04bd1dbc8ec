import type { ApiKeyInEvent, ApiKeyResource } from '../../accounts/api-key-resource.ts';
import type { BalanceResource } from '../../accounts/balance-resource.ts';
import type { BalanceTransactionResource } from '../../accounts/balance-transaction-resource.ts';
import type { TestClockResource } from '../../accounts/test-clock-resource.ts';
import type { CardResource, CreateCardRequest, UpdateCardRequest } from '../../cards/resource.ts';
import type { SpendingLimitResource } from '../../cards/spending-limit-resource.ts';
import type { TopUpResource, WithdrawalResource } from '../../cards/transfers/resource.ts';
import type { DepositResource } from '../../deposits/resource.ts';
import type { StatementResource } from '../../exports/statement-resource.ts';
import type { AuthorizationResource } from '../../payments/authorization-resource.ts';
import type { TransactionResource } from '../../payments/transaction-resource.ts';
import type { OperationResource } from '../../requests/resource.ts';
import type { WebhookEndpointResource } from '../../webhooks/endpoint-resource.ts';
import type { WebhookReplayResource } from '../../webhooks/replays/resource.ts';

// The examples of the API reference: real responses to a sequence of requests. Those of events are made in event.ts.

export const REQUEST_ID = 'req_01m810261f56tm02pjpg6322pv';
export const OPERATION_ID = 'op_01m8102545y9zmj2q0v8dtd6pk';

export const exampleList = <Item>(...data: Item[]) => ({
  object: 'list',
  data,
  has_more: false,
  next_cursor: null,
});

export const PING = {
  ok: true,
  partner_id: 'prt_01m810203vnznn24cgx7j7hxc3',
  partner_name: 'Acme Inc.',
  mode: 'test',
};

export const PRODUCT = { product_code: 'TEST-USD', bin: '424242', network: 'visa' };

export const BALANCE_ALERT = { object: 'balance_alert', threshold: 100_000, mode: 'live' } as const;

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

export const LOW_BALANCE = {
  ...{ object: 'balance', mode: 'live', currency: 'USD' },
  ...{ available: 94_800, held: 5_200, total: 100_000 },
} as const satisfies BalanceResource;

export const RECOVERED_BALANCE = {
  ...LOW_BALANCE,
  ...{ available: 344_800, total: 350_000 },
} as const satisfies BalanceResource;

export const QUOTE = {
  type: 'card_issue',
  currency: 'USD',
  card_amount: 5_000,
  total_debited: 5_200,
  fees: [
    { type: 'card_activation', amount: 100 },
    { type: 'card_funding', amount: 100 },
  ],
};

/** Right after POST /test/credit. */
export const BALANCE: BalanceResource = {
  object: 'balance',
  mode: 'test',
  currency: 'USD',
  available: 1_000_000,
  held: 0,
  total: 1_000_000,
};

/** Right after POST /test/clock/advance. */
export const TEST_CLOCK: TestClockResource = {
  object: 'test_clock',
  now: '2026-11-20T08:00:30.000Z',
  offset_seconds: 30,
  status: 'ready',
  mode: 'test',
};

/** While a card is being issued. */
export const BALANCE_WITH_HOLD: BalanceResource = {
  object: 'balance',
  mode: 'live',
  currency: 'USD',
  available: 244_800,
  held: 5_200,
  total: 250_000,
};

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

export const SECURE_DETAILS = {
  card_id: CARD.id,
  pan: '4242801506965632',
  cvv: '130',
  exp_month: '10',
  exp_year: '2031',
  cardholder_name: 'Ada Lovelace',
};

export const OPERATION: OperationResource = {
  id: OPERATION_ID,
  object: 'operation',
  type: 'create_card',
  status: 'in_progress',
  idempotency_key: 'order-4712',
  resource: { type: 'card', id: PENDING_CARD.id },
  response_status: 202,
  network: {
    asked: 3,
    last_answer: 'pending',
    last_asked_at: '2026-11-22T06:45:53.671Z',
    next_ask_at: '2026-11-22T06:45:57.671Z',
    deadline: '2026-11-23T06:45:50.459Z',
  },
  waits_for: 'network',
  mode: 'live',
  created: '2026-11-22T06:45:50.459Z',
  completed_at: null,
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

export const SIMULATE_TRANSACTION = {
  type: 'purchase',
  amount: 1_250,
  merchant_name: 'Café Central',
  merchant_category_code: '5812',
  merchant_city: 'Vienna',
  merchant_country: 'AT',
};

export const TRANSACTION: TransactionResource = {
  id: 'txn_01m8102143jn4tsm29rv5e4ad4',
  object: 'transaction',
  card_id: CARD.id,
  type: 'purchase',
  status: 'settled',
  amount: 1_250,
  currency: 'USD',
  fees: [{ type: 'transaction', amount: 16 }],
  merchant: { name: 'Café Central', category_code: '5812', city: 'Vienna', country: 'AT' },
  decline_reason: null,
  charged_to: 'card',
  card_amount: 1_250,
  partner_balance_amount: 0,
  authorization_id: null,
  refunded_transaction_id: null,
  card_balance_after: 6_250,
  mode: 'test',
  created: '2026-11-22T06:45:50.851Z',
};

export const CREATE_AUTHORIZATION = {
  amount: 1_250,
  merchant_name: 'Café Central',
  merchant_category_code: '5812',
  merchant_city: 'Vienna',
  merchant_country: 'AT',
};

export const AUTHORIZATION: AuthorizationResource = {
  id: 'auth_01m8102143jn4tsm29rv5e4ad5',
  object: 'authorization',
  card_id: CARD.id,
  status: 'pending',
  amount: 1_250,
  held_amount: 1_250,
  settled_amount: 0,
  currency: 'USD',
  decline_reason: null,
  merchant: { name: 'Café Central', category_code: '5812', city: 'Vienna', country: 'AT' },
  requests: [
    {
      type: 'authorization',
      amount: 1_250,
      approved: true,
      decline_reason: null,
      created: '2026-11-22T06:45:50.851Z',
    },
  ],
  expires_at: '2026-11-29T06:45:50.851Z',
  mode: 'test',
  created: '2026-11-22T06:45:50.851Z',
};

export const REVERSED_AUTHORIZATION: AuthorizationResource = {
  ...AUTHORIZATION,
  status: 'reversed',
  amount: 0,
  held_amount: 0,
};

export const EXPIRED_AUTHORIZATION: AuthorizationResource = {
  ...AUTHORIZATION,
  status: 'expired',
  held_amount: 0,
};

export const CLEARING: TransactionResource = {
  ...TRANSACTION,
  id: 'txn_01m810214vjn4tsm29rv5e4ad6',
  authorization_id: AUTHORIZATION.id,
  created: '2026-11-23T09:12:03.412Z',
};

export const BALANCE_TRANSACTION: BalanceTransactionResource = {
  id: 'btx_00000000002gxamp4vrahs4tj3',
  object: 'balance_transaction',
  type: 'card_issue',
  amount: -5_000,
  balance_after: 995_000,
  source: { type: 'card', id: CARD.id },
  mode: 'test',
  created: '2026-11-22T06:45:50.502Z',
};

export const DEPOSIT: DepositResource = {
  id: 'dep_01m81024rsn2cd3wbfg26a4bjh',
  object: 'deposit',
  status: 'awaiting_payment',
  amount: 250_000,
  currency: 'USD',
  asset: 'USDT',
  network: 'TRC-20',
  contract_address: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf',
  address: 'TWer2Ygk5TEheHp3TPuYeqxmB6SsGZmaL6',
  amount_usdt: '2500.00',
  received_amount: 0,
  credited_amount: 0,
  tx_hash: null,
  payments: [],
  mode: 'live',
  created: '2026-11-22T06:45:54.585Z',
  expires_at: '2026-11-22T14:45:54.585Z',
  confirmed_at: null,
};

const TX_HASH = 'f37e31cc490e2e433ec27ad5693314d2685727184c43802e31870e430add7be2';

export const CONFIRMED_DEPOSIT: DepositResource = {
  ...DEPOSIT,
  status: 'confirmed',
  received_amount: 250_000,
  credited_amount: 250_000,
  tx_hash: TX_HASH,
  payments: [
    {
      tx_hash: TX_HASH,
      amount_usdt: '2500.00',
      block: 77_412_903,
      time: '2026-11-22T07:04:12.000Z',
      status: 'credited',
    },
  ],
  confirmed_at: '2026-11-22T07:05:14.791Z',
};

/** The sender's exchange took its fee from the amount. */
export const DEPOSIT_IN_REVIEW: DepositResource = {
  ...DEPOSIT,
  status: 'needs_review',
  received_amount: 249_900,
  tx_hash: TX_HASH,
  payments: [
    {
      tx_hash: TX_HASH,
      amount_usdt: '2499.00',
      block: 77_412_903,
      time: '2026-11-22T07:04:12.000Z',
      status: 'in_review',
    },
  ],
};

export const EXPIRED_DEPOSIT: DepositResource = { ...DEPOSIT, status: 'expired' };

/** Right after POST /test/deposits. */
export const TEST_DEPOSIT: DepositResource = {
  ...DEPOSIT,
  contract_address: 'test_usdt',
  address: 'test_01m81024rsn2cd3wbfg26a4bjh',
  mode: 'test',
};

/** It was short, and credited. */
export const RESOLVED_TEST_DEPOSIT: DepositResource = {
  ...TEST_DEPOSIT,
  status: 'confirmed',
  received_amount: 125_000,
  credited_amount: 125_000,
  tx_hash: TX_HASH,
  payments: [
    {
      tx_hash: TX_HASH,
      amount_usdt: '1250.00',
      block: 598_451_201,
      time: '2026-11-22T07:04:12.000Z',
      status: 'credited',
    },
  ],
  confirmed_at: '2026-11-22T07:05:14.791Z',
};

export const WEBHOOK_ENDPOINT: WebhookEndpointResource = {
  id: 'we_01m8101zgj5d8x2v7k4c9n3qtf',
  object: 'webhook_endpoint',
  url: 'https://hooks.example.com/cards',
  mode: 'test',
  event_types: null,
  description: null,
  status: 'enabled',
  disabled_reason: null,
  standard_webhooks: false,
  previous_secret_expires_at: null,
  consecutive_failures: 0,
  failing_since: null,
  last_success_at: null,
  last_failure: null,
  created: '2026-11-22T06:45:50.402Z',
};

export const SECOND_ENDPOINT: WebhookEndpointResource = {
  ...WEBHOOK_ENDPOINT,
  id: 'we_01m8101zwr7h2b6n0d5t8y4jgc',
  url: 'https://accounting.example.com/deposits',
  event_types: ['deposit.confirmed'],
  description: 'Accounting',
  created: '2026-11-22T06:45:50.808Z',
};

export const FAILING_ENDPOINT: WebhookEndpointResource = {
  ...SECOND_ENDPOINT,
  url: 'https://accounting.example.com',
  consecutive_failures: 10,
  failing_since: '2026-11-22T06:46:10.117Z',
  last_success_at: '2026-11-22T06:46:02.951Z',
  last_failure: { at: '2026-11-22T06:52:41.730Z', http_status: 503, error: 'http_503' },
};

export const DISABLED_ENDPOINT: WebhookEndpointResource = {
  ...SECOND_ENDPOINT,
  url: 'https://accounting.example.com',
  status: 'disabled',
  disabled_reason: 'it answered 410 Gone',
  consecutive_failures: 1,
  failing_since: '2026-11-22T06:46:10.117Z',
  last_failure: { at: '2026-11-22T06:46:10.117Z', http_status: 410, error: 'http_410' },
};

export const WEBHOOK_REPLAY: WebhookReplayResource = {
  id: 'rpl_01m8102c5n9d3t7x1q6h8w2k4b',
  object: 'webhook_replay',
  endpoint_id: SECOND_ENDPOINT.id,
  status: 'running',
  matched: 214,
  sent: 0,
  mode: SECOND_ENDPOINT.mode,
  created: '2026-11-22T06:45:56.217Z',
};

export const WEBHOOK_SECRET = 'whsec_BBBM01k/A3ywjqaxEnm2scr0Eltr5KlIeIievF+a';

export const ROTATED_ENDPOINT: WebhookEndpointResource = {
  ...WEBHOOK_ENDPOINT,
  secret: WEBHOOK_SECRET,
  previous_secret_expires_at: '2026-11-23T06:45:54.530Z',
};

export const API_KEY_REQUEST = {
  name: 'Card server',
  scopes: ['cards:read', 'cards:write'],
  ip_allowlist: ['203.0.113.7', '2001:db8:10::/48'],
};

export const API_KEY: ApiKeyResource = {
  id: 'key_01m81022g8t4q6w2b9c5d7e1fh',
  object: 'api_key',
  name: 'Card server',
  prefix: 'sk_test_4nYk',
  scopes: ['cards:read', 'cards:write'],
  ip_allowlist: ['203.0.113.7', '2001:db8:10::/48'],
  expires_at: null,
  last_used_at: null,
  created_by: 'key_01m8101zp3m7r5x1v8j2k4n6qs',
  status: 'active',
  mode: 'test',
  created: '2026-11-22T06:45:51.402Z',
};

export const NEW_API_KEY: ApiKeyResource = {
  ...API_KEY,
  key: 'sk_test_4nYkEXAMPLEEXAMPLEEXAMPLEEXAMPLEEXAMPLEEX',
};

const { ip_allowlist: _, ...API_KEY_IN_EVENT } = API_KEY;

export const EXPIRING_API_KEY: ApiKeyInEvent = {
  ...API_KEY_IN_EVENT,
  expires_at: '2026-11-23T06:45:51.402Z',
  last_used_at: '2026-11-22T06:45:31.118Z',
};
