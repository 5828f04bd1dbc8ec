import { query } from '../db/sql.ts';
import { transaction } from '../db/transaction.ts';
import { lockCard } from './lock-card.ts';
import { type Operator, recordAudit } from './operator-context.ts';
import { Refusal, unknownId } from './refusal.ts';
import { type DecisionByHand, requireOverdue } from './require-overdue.ts';

export interface IssuanceByHand extends DecisionByHand {
  cardId: string;
  outcome: 'issued' | 'failed';
}

/**
 * Records an operator's decision on an issuance whose network stayed silent; the workflow then carries it out.
 * @throws Refusal where there is no such card, its issuance is over, or it is not past its deadline.
 */
export function decideIssuance({ orm, actor }: Operator, decision: IssuanceByHand): Promise<void> {
  const { cardId, outcome, reason } = decision;
  return transaction(orm, async (tx) => {
    const card = await lockCard(tx, cardId);
    if (card === undefined) throw unknownId('card', cardId, 'run "operator attention list"');
    if (card.status !== 'funding_pending') {
      throw new Refusal(
        `The issuance of ${cardId} is over, the card is ${card.status}: nothing is to be resolved.`,
      );
    }
    requireOverdue(card, decision);
    await query(tx, 'UPDATE card SET overdue_since = coalesce(overdue_since, now()) WHERE id = $1', [cardId]);
    const { partner_id: partnerId, mode } = card;
    recordAudit(tx, actor, 'card.resolve', cardId, { partnerId, mode, outcome, reason });
  });
}
