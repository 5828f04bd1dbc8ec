import type { Transactor } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import type { Decision, IssuanceDecision, TopUpDecision, Verdict } from '../../domain/decision.ts';
import type { CardRow } from '../../resources/card.ts';
import { type Operator, recordAudit } from '../accounts/operator-context.ts';
import type { CommandContext } from '../command-context.ts';
import { lockClaim } from '../idempotency/claim.ts';
import type { StoredResponse } from '../idempotency/response.ts';
import { Refusal, unknownId } from '../refusal.ts';
import { checkDecision, markOverdue, recordDecision, refuseDecision } from './decision.ts';
import {
  endFunding,
  type FundingKind,
  type FundingRow,
  lockPendingAndUsage,
  voidFunding,
} from './funding.ts';
import { ISSUANCE } from './issuance.ts';
import { watchDecided } from './late-answers.ts';
import {
  correctNetworkId,
  isGivenByHand,
  isIdOfAnother,
  isUnidentified,
  lookUpSoon,
} from './network-card.ts';
import { TOPUP } from './topup.ts';

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

/**
 * Records an operator's decision on an issuance that the network never answered, or the network id of a card that became
 * active without one; a worker then applies it.
 * @throws Refusal if there is no such card, its issuance is over, or it is not past its deadline.
 */
export function decideIssuance({ orm, actor }: Operator, decision: IssuanceByHand): Promise<void> {
  const { cardId, outcome, networkCardId, reason, deadlineMs } = decision;
  return transaction(orm, async (tx) => {
    const locked = await ISSUANCE.lock(tx, cardId, null);
    if (locked === null) throw unknownId('card', cardId, 'run "operator attention list"');
    const { row: card } = locked;
    const isBlocked = card.status === 'blocked' && isGivenByHand(card);
    if (card.status === 'funding_pending') {
      requireOverdue(card, deadlineMs);
      await markOverdue(tx, 'card', cardId);
    } else if (!isBlocked) {
      requireUnidentified(card, decision);
      await lookUpSoon(tx, cardId);
    }
    if (networkCardId !== undefined && (await isIdOfAnother(tx, cardId, networkCardId))) {
      throw new Refusal(
        `Another card already has the network card id ${networkCardId}: look the card up there again by its token, ${cardId}.`,
      );
    }
    if (isBlocked) {
      if (networkCardId === undefined) throw idMissing(card);
      await correctNetworkId(tx, cardId, networkCardId);
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
    const locked = await TOPUP.lock(tx, topUpId, null);
    if (locked === null) throw unknownId('topup', topUpId, 'run "operator attention list"');
    const { row: topUp } = locked;
    if (topUp.status !== 'pending') {
      throw new Refusal(`${topUpId} has already ${topUp.status}: there is nothing to resolve.`);
    }
    requireOverdue(topUp, deadlineMs);
    await markOverdue(tx, 'topup', topUpId);
    await recordDecision(tx, 'topup', topUpId, decision);
    const { partner_id: partnerId, mode, card_id: cardId } = topUp;
    recordAudit(tx, actor, 'topup.resolve', topUpId, { partnerId, mode, cardId, outcome, reason });
  });
}

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

/** What became of a decision, and the response that it stored for the claim, if any. */
interface Resolution {
  verdict: Verdict;
  response: StoredResponse | null;
}

/**
 * Applies somebody's decision about a funding that the network never answered. These must hold: the funding is past its
 * deadline by `deadlineMs`, no operator has decided otherwise, and a card that becomes active has a network id, since
 * without one it could never be frozen, blocked or topped up. The effect and its audit entry are one transaction. A funding
 * that is over is left as it is.
 * @param told the decision as the workflow received it
 * @param known.evidence what the network says about the card
 * @param known.sentBy whom Temporal recorded as the sender of the decision
 */
export function applyResolution<Row extends FundingRow, Evidence>(
  kind: FundingKind<Row, unknown, object, string, Evidence>,
  { orm, ring }: CommandContext,
  claimId: string,
  told: Decision,
  { deadlineMs, evidence, sentBy }: { deadlineMs: number; evidence: Evidence; sentBy: string | null },
): Promise<Resolution> {
  return transaction(orm, async (tx) => {
    const pending = await lockPendingAndUsage(kind, tx, claimId);
    if (pending === null) return { verdict: await verdictOfMissing(tx, claimId), response: null };
    const { row, card } = pending;
    const { partner_id: partnerId, mode } = row;
    const about = { partnerId, mode, ...(card.id !== row.id && { cardId: card.id }) };
    const checked = await checkDecision(tx, { table: kind.table, id: row.id }, told, deadlineMs);
    if ('because' in checked) return { verdict: checked, response: null };
    const { decision, isRecorded } = checked;

    let response: StoredResponse | null;
    if (decision.outcome === 'failed') {
      response = await voidFunding(kind, tx, ring, pending, 'operator_failed');
    } else {
      const loaded = await kind.loadedByHand(tx, row, decision, evidence);
      if (typeof loaded === 'string') {
        return { verdict: await refuseDecision(tx, kind.table, row.id, loaded), response: null };
      }
      response = await endFunding(kind, tx, ring, pending, 'post', kind.loaded(pending, loaded));
    }
    const { cardId, amountCents, fees } = kind.funding(row);
    await watchDecided(tx, { kind: kind.table, id: row.id, partnerId, cardId, amountCents, fees });
    // An operator's command has written its own audit entry.
    if (!isRecorded) {
      const { outcome, networkCardId } = decision;
      const detail = {
        ...about,
        outcome,
        ...(networkCardId !== undefined && { networkCardId }),
        identity: sentBy,
      };
      recordAudit(tx, 'temporal', `${kind.table}.resolve`, row.id, detail);
    }
    return { verdict: { over: true }, response };
  });
}

/** A funding that is not pending is over, unless it has not begun yet: then its claim still waits for a response. */
async function verdictOfMissing(tx: Transactor, claimId: string): Promise<Verdict> {
  const claim = await lockClaim(tx, claimId);
  return claim === null || claim.answered ? { over: true } : { over: false, because: 'too_early' };
}
