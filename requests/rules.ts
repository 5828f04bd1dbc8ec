import { z } from 'zod';
import type { ClaimOperation } from '../domain/claim-operation.ts';
import { type Id, isId } from '../domain/ids.ts';

/** How far an operation is (docs/partners/operations.md). */
export const OperationStatus = z.enum(['in_progress', 'completed', 'awaiting_review']).meta({
  id: 'OperationStatus',
  description:
    '`in_progress`: something is left to happen, by itself. `completed`: nothing is, whatever the outcome. `awaiting_review`: ' +
    'the card network has not decided by the deadline, and we find out what it did.',
});
export type OperationStatus = z.infer<typeof OperationStatus>;

/** What the card network said when it was asked the last time. */
export const NetworkAnswer = z.enum(['no_answer', 'pending', 'succeeded', 'declined']).meta({
  id: 'NetworkAnswer',
  description:
    '`no_answer`: we could not reach it, or it gave no definite answer. `pending`: it works on the request. `succeeded`, ' +
    '`declined`: it has decided.',
});
export type NetworkAnswer = z.infer<typeof NetworkAnswer>;

export const OperationType = z
  .enum([
    'create_card',
    'top_up_card',
    'withdraw_from_card',
    'freeze_card',
    'unfreeze_card',
    'block_card',
    'update_card',
    'create_deposit_address',
    'create_test_deposit',
    'resolve_test_deposit',
    'test_credit',
    'advance_test_clock',
    'simulate_transaction',
    'create_authorization',
    'increment_authorization',
    'capture_authorization',
    'reverse_authorization',
    'expire_authorization',
    'force_capture',
  ])
  .meta({ id: 'OperationType', description: 'What the request asked for.' });
export type OperationType = z.infer<typeof OperationType>;

/** What partners call the operations of claims. */
export const OPERATION_TYPES: Record<ClaimOperation, OperationType> = {
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
};

/** An operation has the id of its claim, under a prefix of its own. */
export const operationId = (claimId: string): Id<'op'> => `op_${claimId.slice('claim_'.length)}`;

/** The claim of an operation; null for an id of another shape. */
export const claimOfOperation = (id: string): Id<'claim'> | null =>
  isId('op', id) ? `claim_${id.slice('op_'.length)}` : null;
