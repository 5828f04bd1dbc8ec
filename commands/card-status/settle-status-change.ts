import { query } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import { ApiError } from '../../domain/api-error.ts';
import type { CommandContext } from '../command-context.ts';
import { refuseClaim } from '../idempotency/answer-claim.ts';
import { finishStatusChange } from './finish-status-change.ts';
import { lockStatusChange } from './lock-status-change.ts';

/**
 * Ends a change that the network has decided on, and with it the card's mark, so that the next one can begin. `refused`:
 * nothing changes, and the claim's answer is 409 `invalid_state`. What is over already stays as it is.
 * @returns the claims that have their answer now: this one, and those of top-ups that a block ended
 */
export function settleStatusChange(
  { orm, ring }: CommandContext,
  claimId: string,
  decision: 'applied' | 'refused',
): Promise<string[]> {
  return transaction(orm, async (tx) => {
    const locked = await lockStatusChange(tx, claimId);
    if (locked === null) return [claimId];
    const { card } = locked;
    if (card.status_change_claim_id !== claimId) throw new Error(`${claimId} is not under way on ${card.id}`);
    if (decision === 'applied') return finishStatusChange(tx, ring, claimId, locked);
    await query(tx, 'UPDATE card SET status_change_claim_id = NULL WHERE id = $1', [card.id]);
    const message = `The card network refused the change. The card is still ${card.status}.`;
    await refuseClaim(tx, ring, claimId, new ApiError('invalid_state', { message }));
    return [claimId];
  });
}
