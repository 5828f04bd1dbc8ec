import { CARD } from '../cards/examples.ts';
import type { AuthorizationResource } from './authorization-resource.ts';
import type { TransactionResource } from './transaction-resource.ts';

// Real responses to a sequence of requests, as the API reference shows them.

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
