/** What an Idempotency-Key can be used for (docs/partners/idempotency.md). */
export type ClaimOperation = WorkflowOperation | 'credit_faucet' | 'simulate_transaction' | 'create_deposit';

/** The operations that a workflow carries out in live mode. */
export type WorkflowOperation =
  | 'create_card'
  | 'top_up_card'
  | 'freeze_card'
  | 'unfreeze_card'
  | 'block_card';
