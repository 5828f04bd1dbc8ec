import type { Operator } from '../commands/accounts/operator-context.ts';
import { decideIssuance } from '../commands/funding/decide-issuance.ts';
import type { IssuanceDecision } from '../domain/decision.ts';
import { siblingId } from '../domain/ids.ts';
import { carryOutDecision, untilCarriedOut } from './carry-out-decision.ts';
import { findCard, type OperatorCard, readCard } from './reads/read-card.ts';
import type { Session } from './session.ts';

/**
 * Settles an issuance that waits for an operator, or gives a card that became active without it the network's id, and
 * waits until the card has changed.
 * @returns the card; one whose request had no answer yet is gone after a no, and is shown as it would be.
 * @throws Refusal as carryOutDecision
 */
export async function resolveCard(
  session: Session,
  cardId: string,
  { reason, ...decision }: IssuanceDecision & { reason: string },
  waitMs: number,
): Promise<OperatorCard> {
  const orm = await session.orm();
  const before = await readCard(orm, cardId);
  const { issuanceDeadlineMs: deadlineMs } = session.config;
  const record = (operator: Operator) =>
    decideIssuance(operator, { cardId, ...decision, reason, deadlineMs });
  if (before.status !== 'funding_pending') {
    await record(await session.operator());
    return untilCarriedOut(session, waitMs, 'card', cardId, async () => {
      const card = await readCard(orm, cardId);
      return card.network_card_id === decision.networkCardId ? card : null;
    });
  }
  return carryOutDecision(session, waitMs, {
    noun: 'card',
    before,
    claim: { claimId: siblingId('claim', cardId), cardId },
    decided: { operation: 'create_card', decision },
    record,
    read: async () => (await findCard(orm, cardId)) ?? gone(before),
  });
}

/** A refusal in the same call leaves no card behind (decisions.md, "Resources"); its request is answered with 402. */
function gone(card: OperatorCard): OperatorCard {
  return { ...card, status: 'failed', failure_code: 'provider_declined', overdue_since: null };
}
