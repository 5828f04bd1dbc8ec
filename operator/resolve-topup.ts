import { decideTopUp } from '../commands/funding/decide-top-up.ts';
import { siblingId } from '../domain/ids.ts';
import { carryOutDecision } from './carry-out-decision.ts';
import { findTopUp, type OperatorTopUp, readTopUp } from './reads/read-topup.ts';
import type { Session } from './session.ts';

/**
 * Settles a top-up that waits for an operator, and waits until it has ended.
 * @returns the top-up; one whose request had no answer yet is gone after a no, and is shown as it would be.
 * @throws Refusal as carryOutDecision
 */
export async function resolveTopUp(
  session: Session,
  topUpId: string,
  { outcome, reason }: { outcome: 'succeeded' | 'failed'; reason: string },
  waitMs: number,
): Promise<OperatorTopUp> {
  const orm = await session.orm();
  const before = await readTopUp(orm, topUpId);
  const { topUpDeadlineMs: deadlineMs } = session.config;
  return carryOutDecision(session, waitMs, {
    noun: 'topup',
    before,
    claim: { claimId: siblingId('claim', topUpId), cardId: before.card_id },
    decided: { operation: 'top_up_card', decision: { outcome } },
    record: (operator) => decideTopUp(operator, { topUpId, outcome, reason, deadlineMs }),
    read: async () => (await findTopUp(orm, topUpId)) ?? gone(before),
  });
}

/** As of a card: a refusal in the same call leaves no top-up behind. */
function gone(topUp: OperatorTopUp): OperatorTopUp {
  return { ...topUp, status: 'failed', failure_code: 'provider_declined', overdue_since: null };
}
