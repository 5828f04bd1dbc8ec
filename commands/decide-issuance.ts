import { query } from '../db/sql.ts';
import { transaction } from '../db/transaction.ts';
import type { CardRow } from '../domain/card-resource.ts';
import { lockCard } from './lock-card.ts';
import { type Operator, recordAudit } from './operator-context.ts';
import { Refusal, unknownId } from './refusal.ts';

export interface IssuanceByHand {
  cardId: string;
  outcome: 'issued' | 'failed';
  reason: string;
  /** How long the network may take. */
  deadlineMs: number;
  /** Whether nothing drives the issuance any more, so that nothing can mark it as past its deadline. */
  workflowEnded: boolean;
}

/**
 * Records an operator's decision on an issuance whose network stayed silent, and returns the card; the workflow then
 * carries it out. Past the deadline is what the workflow has marked so, or what has lost its workflow and is old enough.
 * @throws Refusal where there is no such card, its issuance is over, or it is not past its deadline.
 */
export function decideIssuance({ orm, actor }: Operator, decision: IssuanceByHand): Promise<CardRow> {
  const { cardId, outcome, reason, deadlineMs, workflowEnded } = decision;
  return transaction(orm, async (tx) => {
    const card = await lockCard(tx, cardId);
    if (card === undefined) throw unknownId('card', cardId, 'run "operator attention list"');
    if (card.status !== 'funding_pending') {
      throw new Refusal(
        `The issuance of ${cardId} is over, the card is ${card.status}: nothing is to be resolved.`,
      );
    }
    if (card.overdue_since === null) {
      const dueAt = new Date(new Date(card.created_at).getTime() + deadlineMs);
      if (dueAt > new Date()) {
        throw new Refusal(
          `${cardId} is not past its deadline, ${dueAt.toISOString()}: until then the network may still answer.`,
        );
      }
      if (!workflowEnded) {
        throw new Refusal(
          `The workflow of ${cardId} has not noticed yet that it is past its deadline: see that a worker runs, ` +
            'then try again.',
        );
      }
      await query(tx, 'UPDATE card SET overdue_since = now() WHERE id = $1', [cardId]);
    }
    recordAudit(tx, actor, 'card.resolve', cardId, {
      partnerId: card.partner_id,
      mode: card.mode,
      outcome,
      reason,
    });
    return card;
  });
}
