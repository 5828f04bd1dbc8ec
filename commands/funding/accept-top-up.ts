import { transaction } from '../../db/transaction.ts';
import { readCardBalance } from '../../ledger/balances.ts';
import { presentTopUp } from '../../resources/topup.ts';
import type { CommandContext } from '../command-context.ts';
import { answerClaim } from '../idempotency/answer-claim.ts';
import { lockClaim } from '../idempotency/lock-claim.ts';
import { lockPendingTopUp } from './lock-pending-top-up.ts';

/**
 * Answers a top-up that is still going on with 202 and the pending top-up. From here on a failure is a `failed` top-up
 * and an event, no longer a refusal.
 */
export async function acceptTopUp({ orm, ring }: CommandContext, claimId: string): Promise<void> {
  await transaction(orm, async (tx) => {
    const pending = await lockPendingTopUp(tx, claimId, await lockClaim(tx, claimId));
    if (pending === null) return;
    const resource = presentTopUp(pending.topUp, await readCardBalance(tx, pending.card.id));
    await answerClaim(tx, ring, claimId, 202, resource);
  });
}
