import { CARD } from '../cards/examples.ts';
import type { ApiKeyInEvent, ApiKeyResource } from './api-key-resource.ts';
import type { BalanceResource, BalanceTransactionResource, TestClockResource } from './resource.ts';
import type { WorkbenchSessionResource } from './workbench-session-resource.ts';

// Real responses to a sequence of requests, as the API reference shows them.

export const PING = {
  ok: true,
  partner_id: 'prt_01m810203vnznn24cgx7j7hxc3',
  partner_name: 'Acme Inc.',
  mode: 'test',
};

export const BALANCE_ALERT = { object: 'balance_alert', threshold: 100_000, mode: 'live' } as const;

export const LOW_BALANCE = {
  object: 'balance',
  mode: 'live',
  currency: 'USD',
  available: 94_800,
  held: 5_200,
  total: 100_000,
} as const satisfies BalanceResource;

export const RECOVERED_BALANCE = {
  ...LOW_BALANCE,
  available: 344_800,
  total: 350_000,
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

export const WORKBENCH_SESSION_REQUEST = {
  scopes: ['cards:read', 'balance:read', 'events:read'],
  expires_in_seconds: 7_200,
};

export const WORKBENCH_SESSION: WorkbenchSessionResource = {
  id: 'wbs_01m81023k7r2v9x4c8f6h1j3np',
  object: 'workbench_session',
  url_expires_at: '2026-11-22T06:50:52.519Z',
  scopes: ['cards:read', 'balance:read', 'events:read'],
  api_key_id: 'key_01m8101zp3m7r5x1v8j2k4n6qs',
  status: 'open',
  mode: 'test',
  expires_at: '2026-11-22T08:45:52.519Z',
  created: '2026-11-22T06:45:52.519Z',
};

export const NEW_WORKBENCH_SESSION: WorkbenchSessionResource = {
  ...WORKBENCH_SESSION,
  url: 'https://api.example.com/workbench/#EXAMPLE-TOKEN-EXAMPLE-TOKEN-EXAMPLE-TOKEN-E',
  status: 'unopened',
};

const { ip_allowlist: _, ...API_KEY_IN_EVENT } = API_KEY;

export const EXPIRING_API_KEY: ApiKeyInEvent = {
  ...API_KEY_IN_EVENT,
  expires_at: '2026-11-23T06:45:51.402Z',
  last_used_at: '2026-11-22T06:45:31.118Z',
};
