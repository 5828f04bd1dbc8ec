import { decideIssuance } from '../commands/decide-issuance.ts';
import { siblingId } from '../domain/ids.ts';
import { carryOutDecision } from './carry-out-decision.ts';
import { findCard, type OperatorCard, readCard } from './reads/read-card.ts';
import type { Session } from './session.ts';

/**
 * Settles an issuance that waits for an operator, and waits until the card has changed.
 * @returns the card; one whose request had no answer yet is gone after a no, and is shown as it would be.
 * @throws Refusal as carryOutDecision
 */
export async function resolveCard(
  session: Session,
  cardId: string,
  { outcome, reason }: { outcome: 'issued' | 'failed'; reason: string },
  waitMs: number,
): Promise<OperatorCard> {
  const orm = await session.orm();
  const before = await readCard(orm, cardId);
  const { issuanceDeadlineMs: deadlineMs } = session.config;
  return carryOutDecision(session, waitMs, {
    noun: 'card',
    before,
    claim: { claimId: siblingId('claim', cardId), cardId },
    decided: { operation: 'create_card', decision: { outcome } },
    record: (operator, workflowEnded) =>
      decideIssuance(operator, { cardId, outcome, reason, deadlineMs, workflowEnded }),
    read: async () => (await findCard(orm, cardId)) ?? gone(before),
  });
}

/** A refusal in the same call leaves no card behind (decisions.md, "Resources"); its request is answered with 402. */
function gone(card: OperatorCard): OperatorCard {
  return { ...card, status: 'failed', failure_code: 'provider_declined', overdue_since: null };
}
