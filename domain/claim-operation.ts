/**
 * What an Idempotency-Key can be used for (docs/partners/idempotency.md), and what partners call it, as the type
 * of an operation.
 */
export const CLAIM_OPERATIONS = {
  create_card: 'create_card',
  top_up_card: 'top_up_card',
  withdraw_from_card: 'withdraw_from_card',
  freeze_card: 'freeze_card',
  unfreeze_card: 'unfreeze_card',
  block_card: 'block_card',
  update_card: 'update_card',
  create_deposit: 'create_deposit_address',
  create_test_deposit: 'create_test_deposit',
  resolve_test_deposit: 'resolve_test_deposit',
  credit_faucet: 'test_credit',
  advance_test_clock: 'advance_test_clock',
  simulate_transaction: 'simulate_transaction',
  authorize_card: 'create_authorization',
  increment_authorization: 'increment_authorization',
  capture_authorization: 'capture_authorization',
  reverse_authorization: 'reverse_authorization',
  expire_authorization: 'expire_authorization',
  force_capture: 'force_capture',
} as const;
export type ClaimOperation = keyof typeof CLAIM_OPERATIONS;

/** The operations that a workflow carries out in live mode. */
export type WorkflowOperation =
  | 'create_card'
  | 'top_up_card'
  | 'withdraw_from_card'
  | 'freeze_card'
  | 'unfreeze_card'
  | 'block_card';
