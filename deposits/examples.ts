import type { DepositResource } from './resource.ts';

// Real responses to a sequence of requests, as the API reference shows them.

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

const PAYMENT: DepositResource['payments'][number] = {
  tx_hash: TX_HASH,
  amount_usdt: '2500.00',
  block: 77_412_903,
  time: '2026-11-22T07:04:12.000Z',
  status: 'credited',
};

export const CONFIRMED_DEPOSIT: DepositResource = {
  ...DEPOSIT,
  status: 'confirmed',
  received_amount: 250_000,
  credited_amount: 250_000,
  tx_hash: TX_HASH,
  payments: [PAYMENT],
  confirmed_at: '2026-11-22T07:05:14.791Z',
};

/** The sender's exchange took its fee from the amount. */
export const DEPOSIT_IN_REVIEW: DepositResource = {
  ...DEPOSIT,
  status: 'needs_review',
  received_amount: 249_900,
  tx_hash: TX_HASH,
  payments: [{ ...PAYMENT, amount_usdt: '2499.00', status: 'in_review' }],
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
  payments: [{ ...PAYMENT, amount_usdt: '1250.00', block: 598_451_201 }],
  confirmed_at: '2026-11-22T07:05:14.791Z',
};
