import { transaction } from '../../db/transaction.ts';
import { siblingId } from '../../domain/ids.ts';
import { presentCard } from '../../resources/card.ts';
import { lockCard } from '../card-status/lock-card.ts';
import type { CommandContext } from '../command-context.ts';
import { answerClaim } from '../idempotency/answer-claim.ts';
import { lockClaim } from '../idempotency/lock-claim.ts';

/**
 * Answers an issuance that is still going on with 202 and its pending card. From here on a failure is a `failed` card
 * and an event, no longer a refusal.
 */
export async function acceptIssuance({ orm, ring }: CommandContext, claimId: string): Promise<void> {
  await transaction(orm, async (tx) => {
    await lockClaim(tx, claimId);
    const card = await lockCard(tx, siblingId('card', claimId));
    if (card?.status === 'funding_pending') await answerClaim(tx, ring, claimId, 202, presentCard(card, 0));
  });
}
