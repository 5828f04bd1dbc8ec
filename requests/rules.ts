import { z } from 'zod';
import { CLAIM_OPERATIONS } from '../domain/claim-operation.ts';
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
  .enum(Object.values(CLAIM_OPERATIONS).map(({ type }) => type))
  .meta({ id: 'OperationType', description: 'What the request asked for.' });

/** An operation has the id of its claim, under a prefix of its own. */
export const operationId = (claimId: string): Id<'op'> => `op_${claimId.slice('claim_'.length)}`;

/** The claim of an operation; null for an id of another shape. */
export const claimOfOperation = (id: string): Id<'claim'> | null =>
  isId('op', id) ? `claim_${id.slice('op_'.length)}` : null;
