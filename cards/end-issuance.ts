import { sql } from 'kysely';
import { ApiError } from '../domain/api-error.ts';
import type { CardFailureCode, IssuedCard } from '../domain/card.ts';
import type { Decision, Verdict } from '../domain/decision.ts';
import type { Tenant } from '../domain/mode.ts';
import { applyPosting, statementWithPosting } from '../ledger/apply-posting.ts';
import { isLasting } from '../platform/db/is-retryable.ts';
import { cte, type Transactor, withCtes, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import type { CommandContext, OpenCommand } from '../requests/command-context.ts';
import { insertEvents, newEvent } from '../requests/event.ts';
import { recordAudit } from '../requests/operator-context.ts';
import { claimOutcome, endClaim, type OutcomeValues, outcomeResponse } from '../requests/outcome.ts';
import { type StoredResponse, storeError, storeResponse } from '../requests/response.ts';
import { checkDecision, refuseDecision, verdictOnMissing } from './decision.ts';
import { fundingPosting } from './funding-posting.ts';
import { watchEnded } from './late-answers.ts';
import { freeNetworkId, type NetworkEvidence, readNetworkCard } from './network-card.ts';
import { type CardRow, EMPTY_CARD, presentCard } from './resource.ts';
import {
  activeCard,
  issuanceFunding,
  issuanceOutcome,
  lockPendingIssuance,
  type PendingIssuance,
} from './row.ts';
import { lockClaimUsage } from './terms.ts';
import { type Load, uncountLoads } from './usage.ts';

/**
 * Answers an issuance that is still pending with 202. After this, a failure is a `failed` card and an event
 * instead of a refusal.
 * @returns the response if this run stored it, as with the functions below
 */
export function acceptIssuance(
  { orm, ring }: CommandContext,
  claimId: string,
): Promise<StoredResponse | null> {
  return transaction(orm, async (tx) => {
    const pending = await lockPendingIssuance(tx, claimId);
    if (pending === null) return null;
    if (!pending.answered) await announceUpdate(tx, pending);
    return storeResponse({ tx, ring }, claimId, 202, presentCard(pending.card, EMPTY_CARD));
  });
}

/**
 * The network has issued the card: posts the hold, activates the card, writes the event, and answers the
 * claim with 201 if it has no response yet. An issuance that is not pending is left as it is.
 */
export async function completeIssuance(
  { orm, ring }: CommandContext,
  claimId: string,
  issued: IssuedCard,
): Promise<StoredResponse | null> {
  const complete = () =>
    transaction(orm, async (tx) => {
      const pending = await lockPendingIssuance(tx, claimId);
      return pending && endIssuance({ tx, ring }, pending, 'post', activeCard(pending.card, issued));
    });
  try {
    return await complete();
  } catch (error) {
    if (!isLasting(error)) throw error;
    const freed = await transaction(orm, (tx) => freeNetworkId(tx, issued));
    if (freed.length === 0) throw error;
    return complete();
  }
}

/**
 * The network definitely said no: releases every held cent. If the claim has no response yet, the refusal is
 * its response, 402 `provider_declined`, and no card is left behind; after a 202 the card is `failed` and an
 * event says so (docs/partners/cards.md). An issuance that is not pending is left as it is.
 */
export function failIssuance(
  { orm, ring }: CommandContext,
  claimId: string,
  failure: CardFailureCode,
): Promise<StoredResponse | null> {
  return transaction(orm, async (tx) => {
    await lockClaimUsage(tx, { claimId });
    const pending = await lockPendingIssuance(tx, claimId);
    return pending && voidIssuance({ tx, ring }, pending, failure);
  });
}

/**
 * Applies somebody's decision about an issuance that the network never answered. These must hold: it is past
 * its deadline by `deadlineMs`, no operator has decided otherwise, and a card that becomes active has a
 * network id, since without one it could never be frozen, blocked or topped up. The effect and its audit
 * entry are one transaction. An issuance that is over is left as it is.
 * @param received the decision as the workflow received it
 * @param known.evidence what the network says about the card
 * @param known.sentBy whom Temporal recorded as the sender of the decision
 */
export function resolveIssuance(
  { orm, ring }: CommandContext,
  claimId: string,
  received: Decision,
  known: { deadlineMs: number; evidence: NetworkEvidence; sentBy: string | null },
): Promise<{ verdict: Verdict; response: StoredResponse | null }> {
  return transaction(orm, async (tx) => {
    await lockClaimUsage(tx, { claimId });
    const pending = await lockPendingIssuance(tx, claimId);
    if (pending === null) return { verdict: await verdictOnMissing(tx, claimId), response: null };
    const { card } = pending;
    const checked = await checkDecision(tx, { table: 'card', id: card.id }, received, known.deadlineMs);
    if ('because' in checked) return { verdict: checked, response: null };
    const { decision, isRecorded } = checked;

    let response: StoredResponse | null;
    if (decision.outcome === 'failed') {
      response = await voidIssuance({ tx, ring }, pending, 'operator_failed');
    } else {
      const issued = await readNetworkCard(tx, card.id, known.evidence, decision.networkCardId);
      if (typeof issued === 'string') {
        return { verdict: await refuseDecision(tx, 'card', card.id, issued), response: null };
      }
      response = await endIssuance({ tx, ring }, pending, 'post', activeCard(card, issued));
    }
    const { id, partner_id: partnerId, mode, funding_cents: amount_cents, fees } = card;
    await watchEnded(tx, [{ kind: 'card', id, partner_id: partnerId, card_id: id, amount_cents, fees }]);
    // An operator's command has written its own audit entry.
    if (!isRecorded) {
      const { outcome, networkCardId } = decision;
      const about = { partnerId, mode, outcome, identity: known.sentBy };
      const detail = networkCardId === undefined ? about : { ...about, networkCardId };
      recordAudit(tx, { actor: 'temporal', action: 'card.resolve', subject: card.id, detail });
    }
    return { verdict: { over: true }, response };
  });
}

/**
 * Writes the event of changes that were made to a card before its creation had a response, now that it gets
 * one. They are told of together, by the card as it is after the last of them.
 */
async function announceUpdate(tx: Transactor, { card, updateUnannounced }: PendingIssuance): Promise<void> {
  if (!updateUnannounced) return;
  const { id: cardId, partner_id: partnerId, mode } = card;
  const data = { card: presentCard(card, EMPTY_CARD) };
  const event = newEvent({ type: 'card.updated', mode, cardId, data, clock: null });
  await announce(tx, { partnerId, mode, cardId, event: JSON.stringify([event]) });
}

const announce = writeStatement(
  (db, { partnerId, mode, cardId, event }: Tenant & { cardId: string; event: string }) => {
    const announced = cte(
      'announced',
      db
        .updateTable('card')
        .set({ update_unannounced: false })
        .where('id', '=', cardId)
        .where('partner_id', '=', partnerId)
        .where('mode', '=', mode)
        .returning(['partner_id', 'mode']),
    );
    return sql`${withCtes([announced])} ${insertEvents(event, announced.rows)}`;
  },
);

/**
 * Releases the money of a pending issuance, in the caller's transaction, which holds the account's usage as
 * well.
 */
async function voidIssuance(
  command: OpenCommand,
  pending: PendingIssuance,
  failure: CardFailureCode,
): Promise<StoredResponse | null> {
  const { claimId, answered, card } = pending;
  const about = { partnerId: card.partner_id, mode: card.mode, cardId: card.id };
  await uncountCard(command.tx, about);
  if (answered) {
    return endIssuance(command, pending, 'void', { ...card, status: 'failed', failure_code: failure });
  }
  await applyPosting(command.tx, fundingPosting(issuanceFunding(card), 'void'));
  await deleteCard(command.tx, about);
  return storeError(command, claimId, new ApiError('provider_declined'));
}

const uncountCard = writeStatement((_, { partnerId, mode, cardId }: Tenant & { cardId: string }) => {
  const failed = sql<Load>`(SELECT partner_id, mode, funding_cents AS cents, counted_on FROM card
    WHERE id = ${cardId} AND partner_id = ${partnerId} AND mode = ${mode})`;
  return uncountLoads(failed, 1);
});

const deleteCard = writeStatement((db, { partnerId, mode, cardId }: Tenant & { cardId: string }) =>
  db.deleteFrom('card').where('id', '=', cardId).where('partner_id', '=', partnerId).where('mode', '=', mode),
);

/**
 * Ends a pending issuance in the caller's transaction: posts or voids its hold, writes the card and the
 * event, and answers the claim if it has no response yet.
 * @param card the row as it will be written
 * @returns the response if there was none yet
 */
async function endIssuance(
  { tx, ring }: OpenCommand,
  pending: PendingIssuance,
  phase: 'post' | 'void',
  card: CardRow,
): Promise<StoredResponse | null> {
  const { claimId, answered } = pending;
  await announceUpdate(tx, pending);
  const outcome = issuanceOutcome(card);
  const values = { ...card, ...claimOutcome(ring, claimId, outcome) };
  await endCard(tx, fundingPosting(issuanceFunding(card), phase), values);
  return answered ? null : outcomeResponse(outcome);
}

const endCard = statementWithPosting((db, card: CardRow & OutcomeValues, ledger) => {
  const ended = cte(
    'ended',
    db
      .updateTable('card')
      .set({
        status: card.status,
        network_card_id: card.network_card_id,
        last4: card.last4,
        exp_month: card.exp_month,
        exp_year: card.exp_year,
        failure_code: card.failure_code,
        claim_id: null,
        overdue_since: null,
        not_recorded: null,
      })
      .where('id', '=', card.id)
      .where('partner_id', '=', card.partner_id)
      .where('mode', '=', card.mode)
      .where('status', '=', 'funding_pending')
      .returning(['partner_id', 'mode']),
  );
  return sql`${withCtes([ended, ...endClaim(ended, card)])} SELECT ${ledger.answer} FROM ${ledger.call}`;
});
