import { query } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import type { IssuanceDecision } from '../../domain/decision.ts';
import type { CardRow } from '../../resources/card.ts';
import { type Operator, recordAudit } from '../accounts/operator-context.ts';
import { lockCard } from '../card-status/lock-card.ts';
import { Refusal, unknownId } from '../idempotency/refusal.ts';
import { recordDecision } from './decision.ts';
import { requireOverdue } from './require-overdue.ts';
import { isIdOfAnother } from './settle-issuance-by-hand.ts';

export interface IssuanceByHand extends IssuanceDecision {
  cardId: string;
  reason: string;
  /** How long the network may take. */
  deadlineMs: number;
}

/**
 * Records an operator's decision on an issuance whose network stayed silent, or the network's id of a card that became
 * active without; a worker then carries it out.
 * @throws Refusal where there is no such card, its issuance is over, or it is not past its deadline.
 */
export function decideIssuance({ orm, actor }: Operator, decision: IssuanceByHand): Promise<void> {
  const { cardId, outcome, networkCardId, reason, deadlineMs } = decision;
  return transaction(orm, async (tx) => {
    const card = await lockCard(tx, cardId);
    if (card === undefined) throw unknownId('card', cardId, 'run "operator attention list"');
    if (card.status === 'funding_pending') {
      requireOverdue(card, deadlineMs);
      await query(tx, 'UPDATE card SET overdue_since = coalesce(overdue_since, now()) WHERE id = $1', [
        cardId,
      ]);
    } else {
      requireUnidentified(card, decision);
      await query(tx, `UPDATE card SET look_up_after = '-infinity' WHERE id = $1`, [cardId]);
    }
    if (networkCardId !== undefined && (await isIdOfAnother(tx, cardId, networkCardId))) {
      throw new Refusal(
        `Another card already has the network card id ${networkCardId}: look the card up there again by its token, ${cardId}.`,
      );
    }
    await recordDecision(tx, 'card', cardId, decision);
    const { partner_id: partnerId, mode } = card;
    const detail = {
      partnerId,
      mode,
      outcome,
      ...(networkCardId !== undefined && { networkCardId }),
      reason,
    };
    recordAudit(tx, actor, 'card.resolve', cardId, detail);
  });
}

/** Whether the network's id or digits of a card are not known, so that they can be given and are looked up. */
export const isUnidentified = (
  card: Pick<CardRow, 'mode' | 'status' | 'network_card_id' | 'last4'>,
): boolean =>
  card.mode === 'live' &&
  (card.status === 'active' || card.status === 'frozen') &&
  (card.network_card_id === null || card.last4 === null);

function requireUnidentified(card: CardRow, { cardId, outcome, networkCardId }: IssuanceByHand): void {
  if (!isUnidentified(card)) {
    throw new Refusal(
      `The issuance of ${cardId} is over and the card is ${card.status}: there is nothing to resolve.`,
    );
  }
  if (outcome === 'failed' || networkCardId === undefined) {
    throw new Refusal(
      `The issuance of ${cardId} is over and the card is ${card.status}. Only its id at the card network is missing: ` +
        'give it with --issued --network-card-id N.',
    );
  }
}
