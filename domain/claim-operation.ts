import type { IdPrefix } from './ids.ts';

interface OperationKind {
  /** What partners call it, as the type of an operation. */
  type: string;
  /** The prefix of the id that it gives to what it makes, `in_response` if that has its id only then. */
  makes: IdPrefix | 'in_response' | null;
  /** Whether live mode asks the card network, in a workflow. */
  asksNetwork: boolean;
}

/** What an Idempotency-Key can be used for (docs/partners/idempotency.md). */
export const CLAIM_OPERATIONS = {
  create_card: { type: 'create_card', makes: 'card', asksNetwork: true },
  top_up_card: { type: 'top_up_card', makes: 'topup', asksNetwork: true },
  withdraw_from_card: { type: 'withdraw_from_card', makes: 'wdr', asksNetwork: true },
  freeze_card: { type: 'freeze_card', makes: null, asksNetwork: true },
  unfreeze_card: { type: 'unfreeze_card', makes: null, asksNetwork: true },
  block_card: { type: 'block_card', makes: null, asksNetwork: true },
  update_card: { type: 'update_card', makes: null, asksNetwork: false },
  create_deposit: { type: 'create_deposit_address', makes: 'dep', asksNetwork: false },
  create_test_deposit: { type: 'create_test_deposit', makes: 'dep', asksNetwork: false },
  resolve_test_deposit: { type: 'resolve_test_deposit', makes: 'in_response', asksNetwork: false },
  credit_faucet: { type: 'test_credit', makes: 'credit', asksNetwork: false },
  advance_test_clock: { type: 'advance_test_clock', makes: null, asksNetwork: false },
  simulate_transaction: { type: 'simulate_transaction', makes: 'in_response', asksNetwork: false },
  authorize_card: { type: 'create_authorization', makes: 'in_response', asksNetwork: false },
  increment_authorization: { type: 'increment_authorization', makes: 'in_response', asksNetwork: false },
  capture_authorization: { type: 'capture_authorization', makes: 'in_response', asksNetwork: false },
  reverse_authorization: { type: 'reverse_authorization', makes: 'in_response', asksNetwork: false },
  expire_authorization: { type: 'expire_authorization', makes: 'in_response', asksNetwork: false },
  force_capture: { type: 'force_capture', makes: 'in_response', asksNetwork: false },
} as const satisfies Record<string, OperationKind>;
type Kinds = typeof CLAIM_OPERATIONS;
export type ClaimOperation = keyof Kinds;

/** The operations that a workflow carries out in live mode. */
export type WorkflowOperation = {
  [Name in ClaimOperation]: Kinds[Name]['asksNetwork'] extends true ? Name : never;
}[ClaimOperation];

/** The operations that give an id to what they make. */
export type MakingOperation = {
  [Name in ClaimOperation]: Kinds[Name]['makes'] extends IdPrefix ? Name : never;
}[ClaimOperation];
