import { query } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import type { TopUpDecision } from '../../domain/decision.ts';
import { type Operator, recordAudit } from '../accounts/operator-context.ts';
import { Refusal, unknownId } from '../idempotency/refusal.ts';
import { recordDecision } from './decision.ts';
import { lockTopUp } from './lock-top-up.ts';
import { requireOverdue } from './require-overdue.ts';

export interface TopUpByHand extends TopUpDecision {
  topUpId: string;
  reason: string;
  /** How long the network may take. */
  deadlineMs: number;
}

/**
 * Records an operator's decision on a top-up whose network stayed silent; a worker then carries it out.
 * @throws Refusal where there is no such top-up, it is over, or it is not past its deadline.
 */
export function decideTopUp({ orm, actor }: Operator, decision: TopUpByHand): Promise<void> {
  const { topUpId, outcome, reason, deadlineMs } = decision;
  return transaction(orm, async (tx) => {
    const topUp = await lockTopUp(tx, topUpId);
    if (topUp === undefined) throw unknownId('topup', topUpId, 'run "operator attention list"');
    if (topUp.status !== 'pending') {
      throw new Refusal(`${topUpId} has already ${topUp.status}: there is nothing to resolve.`);
    }
    requireOverdue(topUp, deadlineMs);
    await query(tx, 'UPDATE topup SET overdue_since = coalesce(overdue_since, now()) WHERE id = $1', [
      topUpId,
    ]);
    await recordDecision(tx, 'topup', topUpId, decision);
    const { partner_id: partnerId, mode, card_id: cardId } = topUp;
    recordAudit(tx, actor, 'topup.resolve', topUpId, { partnerId, mode, cardId, outcome, reason });
  });
}
