/** What an Idempotency-Key can be used for (docs/partners/idempotency.md). */
export type ClaimOperation =
  | WorkflowOperation
  | 'update_card'
  | 'credit_faucet'
  | 'advance_test_clock'
  | 'simulate_transaction'
  | 'create_deposit'
  | 'create_test_deposit'
  | 'resolve_test_deposit'
  | 'authorize_card'
  | 'increment_authorization'
  | 'capture_authorization'
  | 'reverse_authorization'
  | 'expire_authorization'
  | 'force_capture';

/** The operations that a workflow carries out in live mode. */
export type WorkflowOperation =
  | 'create_card'
  | 'top_up_card'
  | 'withdraw_from_card'
  | 'freeze_card'
  | 'unfreeze_card'
  | 'block_card';
