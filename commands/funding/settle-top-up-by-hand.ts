import { transaction } from '../../db/transaction.ts';
import type { TopUpDecision, Verdict } from '../../domain/decision.ts';
import type { CommandContext } from '../command-context.ts';
import { lockUsageAndClaim } from '../idempotency/lock-claim.ts';
import { checkDecision } from './decision.ts';
import { voidTopUp } from './fail-top-up.ts';
import { lockPendingTopUp } from './lock-pending-top-up.ts';
import { postTopUp } from './succeed-top-up.ts';

/**
 * Carries out what somebody decided about a top-up whose network stays silent, if it may be: it is past its deadline by
 * `deadlineMs`, and no operator has decided otherwise. Effect and audit are one transaction; what is over stays as it is.
 */
export function settleTopUpByHand(
  { orm, ring }: CommandContext,
  claimId: string,
  told: TopUpDecision,
  deadlineMs: number,
): Promise<Verdict> {
  return transaction(orm, async (tx): Promise<Verdict> => {
    const claim = await lockUsageAndClaim(tx, claimId);
    const pending = await lockPendingTopUp(tx, claimId, claim);
    if (claim === null || pending === null) return { settled: true };
    const { id, partner_id: partnerId, mode, card_id: cardId } = pending.topUp;
    const about = { partnerId, mode, cardId };
    const checked = await checkDecision(tx, { table: 'topup', id, about }, told, deadlineMs);
    if ('because' in checked) return checked;
    if (checked.decision.outcome === 'failed') await voidTopUp(tx, ring, claim, pending, 'operator_failed');
    else await postTopUp(tx, ring, pending);
    checked.audit();
    return { settled: true };
  });
}
