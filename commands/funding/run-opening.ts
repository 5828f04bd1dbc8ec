import type { EntityManager } from '@mikro-orm/postgresql';
import { transaction } from '../../db/transaction.ts';
import { ApiError } from '../../domain/api-error.ts';
import type { CommandContext } from '../command-context.ts';
import { refuseClaim } from '../idempotency/answer-claim.ts';
import { lockUsageAndClaim } from '../idempotency/lock-claim.ts';

/** `held`: the network decides next. `answered`: the operation is over and its claim has the answer. */
export type Opening = 'held' | 'answered';

/**
 * Runs the first step of an operation in a transaction. A refusal becomes the claim's answer and leaves nothing else
 * behind, unless another run of the same claim got further meanwhile: then what that did stands.
 * @param found how far the operation is, under the claim's lock; null where nothing of it is there
 */
export async function runOpening(
  { orm, ring }: CommandContext,
  claimId: string,
  open: (tx: EntityManager) => Promise<Opening>,
  found: (tx: EntityManager) => Promise<Opening | null>,
): Promise<Opening> {
  try {
    return await transaction(orm, open);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return transaction(orm, async (tx) => {
      if ((await lockUsageAndClaim(tx, claimId)) === null) return 'answered';
      const state = await found(tx);
      if (state === null) await refuseClaim(tx, ring, claimId, error);
      return state ?? 'answered';
    });
  }
}
