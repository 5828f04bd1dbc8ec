import type { IssuanceDecision, TransferDecision } from '../domain/decision.ts';
import { Refusal, unknownId } from '../domain/refusal.ts';
import { TRANSFERS, type TransferDirection } from '../domain/transfer.ts';
import { TRANSFER_COLUMNS } from '../platform/db/columns.ts';
import { writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import { type Operator, recordAudit } from '../requests/operator-context.ts';
import { DECISIONS } from './decision.ts';
import { lockAnyCard } from './lock-card.ts';
import { isAnotherCardsId, isGivenByHand, lookUpSoon } from './network-card.ts';
import type { CardRow } from './resource.ts';

interface ByOperator {
  reason: string;
  /** How long the network may take. */
  deadlineMs: number;
}

interface IssuanceByHand extends IssuanceDecision, ByOperator {
  cardId: string;
}

interface TransferByHand extends TransferDecision, ByOperator {
  direction: TransferDirection;
  id: string;
}

/**
 * Records an operator's decision on an issuance that the network never answered, or another network id of a
 * card whose id the network has not confirmed; a worker then applies it.
 * @throws Refusal if there is no such card, its issuance is over, or it is not past its deadline.
 */
export function decideIssuance({ orm, actor }: Operator, decision: IssuanceByHand): Promise<void> {
  const { cardId, outcome, networkCardId, reason, deadlineMs } = decision;
  return transaction(orm, async (tx) => {
    await DECISIONS.card.lockClaim(tx, { id: cardId });
    const card = await lockAnyCard(tx, cardId);
    if (card === undefined) throw unknownId('card', cardId, 'run "operator attention list"');
    if (card.status === 'funding_pending') {
      requireOverdue(card, deadlineMs);
      await DECISIONS.card.mark(tx, { id: cardId });
    } else {
      requireUnconfirmed(card, decision);
      await lookUpSoon(tx, { cardId });
    }
    if (networkCardId !== undefined && (await isAnotherCardsId(tx, cardId, networkCardId))) {
      throw new Refusal(
        `Another card already has the network card id ${networkCardId}: look the card up there again by its token, ${cardId}.`,
      );
    }
    await DECISIONS.card.record(tx, { id: cardId, outcome, networkCardId: networkCardId ?? null });
    const { partner_id: partnerId, mode } = card;
    const detail = { partnerId, mode, outcome, networkCardId, reason };
    recordAudit(tx, { actor, action: 'card.resolve', subject: cardId, detail });
  });
}

function requireUnconfirmed(card: CardRow, { cardId, outcome, networkCardId }: IssuanceByHand): void {
  if (!isGivenByHand(card)) {
    throw new Refusal(
      `The issuance of ${cardId} is over and the card is ${card.status}: there is nothing to resolve.`,
    );
  }
  if (outcome === 'failed' || networkCardId === undefined) throw idMissing(card);
}

const idMissing = ({ id, status }: CardRow): Refusal =>
  new Refusal(
    `The issuance of ${id} is over and the card is ${status}. Only its id at the card network is not confirmed: ` +
      'correct it with --issued --network-card-id N.',
  );

/**
 * Records an operator's decision on a transfer that the network never answered; a worker then applies it.
 * @throws Refusal if there is no such transfer, it is over, or it is not past its deadline.
 */
export function decideTransfer({ orm, actor }: Operator, decision: TransferByHand): Promise<void> {
  const { direction, id, outcome, reason, deadlineMs } = decision;
  return transaction(orm, async (tx) => {
    await DECISIONS.card_transfer.lockClaim(tx, { id });
    const [transfer] = await lockTransfer(tx, { direction, id });
    if (transfer === undefined) {
      throw unknownId(TRANSFERS[direction].idPrefix, id, 'run "operator attention list"');
    }
    if (transfer.status !== 'pending') {
      throw new Refusal(`${id} has already ${transfer.status}: there is nothing to resolve.`);
    }
    requireOverdue(transfer, deadlineMs);
    await DECISIONS.card_transfer.mark(tx, { id });
    await DECISIONS.card_transfer.record(tx, { id, outcome, networkCardId: null });
    const { partner_id: partnerId, mode, card_id: cardId } = transfer;
    const detail = { partnerId, mode, cardId, outcome, reason };
    recordAudit(tx, { actor, action: `${direction}.resolve`, subject: id, detail });
  });
}

const lockTransfer = writeStatement(
  (db, { direction, id }: { direction: TransferDirection; id: string }) =>
    db
      .selectFrom('card_transfer')
      .select(TRANSFER_COLUMNS)
      .where('id', '=', id)
      .where('direction', '=', direction)
      .forNoKeyUpdate(),
  { acrossTenants: 'operator' },
);

/**
 * An operation is past its deadline if a worker has marked it, or if it is old enough.
 * @throws Refusal if it is not past its deadline.
 */
function requireOverdue(
  pending: { id: string; overdue_since: string | null; created_at: string },
  deadlineMs: number,
): void {
  if (pending.overdue_since !== null) return;
  const dueAt = new Date(new Date(pending.created_at).getTime() + deadlineMs);
  if (dueAt > new Date()) {
    throw new Refusal(
      `${pending.id} is not past its deadline, ${dueAt.toISOString()}: the network may still respond until then.`,
    );
  }
}
