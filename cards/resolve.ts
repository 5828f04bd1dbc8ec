import type { IssuanceDecision, TopUpDecision, WithdrawalDecision } from '../domain/decision.ts';
import { Refusal, unknownId } from '../domain/refusal.ts';
import { TOPUP_COLUMNS, WITHDRAWAL_COLUMNS } from '../platform/db/columns.ts';
import { writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import { type Operator, recordAudit } from '../requests/operator-context.ts';
import { markOverdue, recordDecision } from './decision.ts';
import { lockAnyCard } from './lock-card.ts';
import {
  correctNetworkId,
  isAnotherCardsId,
  isGivenByHand,
  isUnidentified,
  lookUpSoon,
} from './network-card.ts';
import type { CardRow } from './resource.ts';

interface ByOperator {
  reason: string;
  /** How long the network may take. */
  deadlineMs: number;
}

interface IssuanceByHand extends IssuanceDecision, ByOperator {
  cardId: string;
}

interface TopUpByHand extends TopUpDecision, ByOperator {
  topUpId: string;
}

interface WithdrawalByHand extends WithdrawalDecision, ByOperator {
  withdrawalId: string;
}

/**
 * Records an operator's decision on an issuance that the network never answered, or the network id of a card that became
 * active without one; a worker then applies it.
 * @throws Refusal if there is no such card, its issuance is over, or it is not past its deadline.
 */
export function decideIssuance({ orm, actor }: Operator, decision: IssuanceByHand): Promise<void> {
  const { cardId, outcome, networkCardId, reason, deadlineMs } = decision;
  return transaction(orm, async (tx) => {
    const card = await lockAnyCard(tx, cardId);
    if (card === undefined) throw unknownId('card', cardId, 'run "operator attention list"');
    const isBlocked = card.status === 'blocked' && isGivenByHand(card);
    if (card.status === 'funding_pending') {
      requireOverdue(card, deadlineMs);
      await markOverdue(tx, 'card', cardId);
    } else if (!isBlocked) {
      requireUnidentified(card, decision);
      await lookUpSoon(tx, { cardId });
    }
    if (networkCardId !== undefined && (await isAnotherCardsId(tx, cardId, networkCardId))) {
      throw new Refusal(
        `Another card already has the network card id ${networkCardId}: look the card up there again by its token, ${cardId}.`,
      );
    }
    if (isBlocked) {
      if (networkCardId === undefined) throw idMissing(card);
      await correctNetworkId(tx, { cardId, networkCardId });
    }
    await recordDecision(tx, 'card', cardId, decision);
    const { partner_id: partnerId, mode } = card;
    const detail = {
      partnerId,
      mode,
      outcome,
      networkCardId,
      reason,
    };
    recordAudit(tx, { actor, action: 'card.resolve', subject: cardId, detail });
  });
}

function requireUnidentified(card: CardRow, { cardId, outcome, networkCardId }: IssuanceByHand): void {
  if (!isUnidentified(card)) {
    throw new Refusal(
      `The issuance of ${cardId} is over and the card is ${card.status}: there is nothing to resolve.`,
    );
  }
  if (outcome === 'failed' || networkCardId === undefined) throw idMissing(card);
}

const idMissing = ({ id, status }: CardRow): Refusal =>
  new Refusal(
    `The issuance of ${id} is over and the card is ${status}. Only its id at the card network is missing, or not ` +
      'confirmed: give it with --issued --network-card-id N.',
  );

/**
 * Records an operator's decision on a top-up that the network never answered; a worker then applies it.
 * @throws Refusal if there is no such top-up, it is over, or it is not past its deadline.
 */
export function decideTopUp({ orm, actor }: Operator, decision: TopUpByHand): Promise<void> {
  const { topUpId, outcome, reason, deadlineMs } = decision;
  return transaction(orm, async (tx) => {
    const [topUp] = await lockTopUp(tx, { topUpId });
    if (topUp === undefined) throw unknownId('topup', topUpId, 'run "operator attention list"');
    if (topUp.status !== 'pending') {
      throw new Refusal(`${topUpId} has already ${topUp.status}: there is nothing to resolve.`);
    }
    requireOverdue(topUp, deadlineMs);
    await markOverdue(tx, 'topup', topUpId);
    await recordDecision(tx, 'topup', topUpId, decision);
    const { partner_id: partnerId, mode, card_id: cardId } = topUp;
    recordAudit(tx, {
      actor,
      action: 'topup.resolve',
      subject: topUpId,
      detail: { partnerId, mode, cardId, outcome, reason },
    });
  });
}

const lockTopUp = writeStatement(
  (db, { topUpId }: { topUpId: string }) =>
    db.selectFrom('topup').select(TOPUP_COLUMNS).where('id', '=', topUpId).forNoKeyUpdate(),
  { acrossTenants: 'operator' },
);

/**
 * Records an operator's decision on a withdrawal that the network never answered; a worker then applies it.
 * @throws Refusal if there is no such withdrawal, it is over, or it is not past its deadline.
 */
export function decideWithdrawal({ orm, actor }: Operator, decision: WithdrawalByHand): Promise<void> {
  const { withdrawalId, outcome, reason, deadlineMs } = decision;
  return transaction(orm, async (tx) => {
    const [withdrawal] = await lockWithdrawal(tx, { withdrawalId });
    if (withdrawal === undefined) {
      throw unknownId('wdr', withdrawalId, 'run "operator attention list"');
    }
    if (withdrawal.status !== 'pending') {
      throw new Refusal(`${withdrawalId} has already ${withdrawal.status}: there is nothing to resolve.`);
    }
    requireOverdue(withdrawal, deadlineMs);
    await markOverdue(tx, 'withdrawal', withdrawalId);
    await recordDecision(tx, 'withdrawal', withdrawalId, decision);
    const { partner_id: partnerId, mode, card_id: cardId } = withdrawal;
    recordAudit(tx, {
      actor,
      action: 'withdrawal.resolve',
      subject: withdrawalId,
      detail: { partnerId, mode, cardId, outcome, reason },
    });
  });
}

const lockWithdrawal = writeStatement(
  (db, { withdrawalId }: { withdrawalId: string }) =>
    db.selectFrom('withdrawal').select(WITHDRAWAL_COLUMNS).where('id', '=', withdrawalId).forNoKeyUpdate(),
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
