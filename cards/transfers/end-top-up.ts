import { sql } from 'kysely';
import { ApiError } from '../../domain/api-error.ts';
import type { TopUpDecision, Verdict } from '../../domain/decision.ts';
import type { Tenant } from '../../domain/mode.ts';
import { applyPosting, statementWithPosting } from '../../ledger/apply-posting.ts';
import { CARD_COLUMNS, of, TOPUP_COLUMNS } from '../../platform/db/columns.ts';
import { readStatement, type Transactor, writeStatement } from '../../platform/db/sql.ts';
import { transaction } from '../../platform/db/transaction.ts';
import type { CommandContext, OpenCommand } from '../../requests/command-context.ts';
import { recordAudit } from '../../requests/operator-context.ts';
import {
  claimOutcome,
  type Outcome,
  type OutcomeValues,
  outcomeResponse,
  writeClaimOutcome,
} from '../../requests/outcome.ts';
import { type StoredResponse, storeError, storeResponse } from '../../requests/response.ts';
import { checkDecision, verdictOnMissing } from '../decision.ts';
import { type Funding, fundingPosting } from '../funding-posting.ts';
import { watchDecided } from '../late-answers.ts';
import { type CardBalance, type CardRow, presentCard } from '../resource.ts';
import { lockClaimUsage } from '../terms.ts';
import { presentTopUp, type TopUpRow } from './top-up-resource.ts';
import type { TopUpFailureCode } from './top-up-rules.ts';

/**
 * Answers a top-up that is still pending with 202. After this, a failure is a `failed` top-up and an event instead of a
 * refusal.
 * @returns the response if this run stored it, as with the functions below
 */
export function acceptTopUp({ orm, ring }: CommandContext, claimId: string): Promise<StoredResponse | null> {
  return transaction(orm, async (tx) => {
    const pending = await lockPendingTopUp(tx, claimId);
    if (pending === null) return null;
    return storeResponse(
      { tx, ring },
      claimId,
      202,
      presentTopUp(pending.topUp, pending.balance.balanceCents),
    );
  });
}

/**
 * The network has loaded the card: posts the hold, completes the top-up, writes the event, and answers the claim with 201 if
 * it has no response yet. A top-up that is not pending is left as it is.
 */
export function completeTopUp(
  { orm, ring }: CommandContext,
  claimId: string,
): Promise<StoredResponse | null> {
  return transaction(orm, async (tx) => {
    const pending = await lockPendingTopUp(tx, claimId);
    if (pending === null) return null;
    return endTopUp({ tx, ring }, pending, 'post', loadedTopUp(pending.topUp, pending.balance, new Date()));
  });
}

/**
 * The network definitely said no: releases every held cent. If the claim has no response yet, the refusal is its response,
 * 402 `provider_declined`, and no top-up is left behind; after a 202 the top-up is `failed` and an event says so
 * (docs/partners/topups.md). A top-up that is not pending is left as it is.
 */
export function failTopUp(
  { orm, ring }: CommandContext,
  claimId: string,
  failure: TopUpFailureCode,
): Promise<StoredResponse | null> {
  return transaction(orm, async (tx) => {
    await lockClaimUsage(tx, { claimId });
    const pending = await lockPendingTopUp(tx, claimId);
    return pending && voidTopUp({ tx, ring }, pending, failure, new ApiError('provider_declined'));
  });
}

/**
 * Applies somebody's decision about a top-up that the network never answered. It has to be past its deadline by
 * `deadlineMs`, and no operator may have decided otherwise. The effect and its audit entry are one transaction. A top-up that
 * is over is left as it is.
 * @param received the decision as the workflow received it
 * @param known.sentBy whom Temporal recorded as the sender of the decision
 */
export function resolveTopUp(
  { orm, ring }: CommandContext,
  claimId: string,
  received: TopUpDecision,
  known: { deadlineMs: number; sentBy: string | null },
): Promise<{ verdict: Verdict; response: StoredResponse | null }> {
  return transaction(orm, async (tx) => {
    await lockClaimUsage(tx, { claimId });
    const pending = await lockPendingTopUp(tx, claimId);
    if (pending === null) return { verdict: await verdictOnMissing(tx, claimId), response: null };
    const { topUp, card, balance } = pending;
    const checked = await checkDecision(tx, { table: 'topup', id: topUp.id }, received, known.deadlineMs);
    if ('because' in checked) return { verdict: checked, response: null };
    const { decision, isRecorded } = checked;
    const response =
      decision.outcome === 'failed'
        ? await voidTopUp({ tx, ring }, pending, 'operator_failed', new ApiError('provider_declined'))
        : await endTopUp({ tx, ring }, pending, 'post', loadedTopUp(topUp, balance, new Date()));
    const { id, partner_id: partnerId, mode, fees } = topUp;
    const amountCents = Number(topUp.amount_cents);
    await watchDecided(tx, { kind: 'topup', id, partnerId, cardId: card.id, amountCents, fees });
    // An operator's command has written its own audit entry.
    if (!isRecorded) {
      const { outcome } = decision;
      const detail = { partnerId, mode, cardId: card.id, outcome, identity: known.sentBy };
      recordAudit(tx, { actor: 'temporal', action: 'topup.resolve', subject: topUp.id, detail });
    }
    return { verdict: { over: true }, response };
  });
}

/** A pending top-up, whose claim, card and row the transaction holds. */
interface PendingTopUp {
  claimId: string;
  /** Whether its claim has a response. */
  answered: boolean;
  topUp: TopUpRow;
  card: CardRow;
  /** The card's. */
  balance: CardBalance;
}

/** Locks a claim and its card, then its top-up. @returns null if that top-up is not pending, or not there */
export async function lockPendingTopUp(tx: Transactor, claimId: string): Promise<PendingTopUp | null> {
  const [claimed] = await lockClaimAndCard(tx, { claimId });
  if (claimed === undefined) return null;
  const { topup_id: topUpId, answered, ...card } = claimed;
  const [locked] = await lockTopUp(tx, { partnerId: card.partner_id, mode: card.mode, topUpId });
  if (locked === undefined || locked.status !== 'pending') return null;
  const { card_cents: cardCents, card_held_cents: heldCents, ...topUp } = locked;
  const balance = { balanceCents: Number(cardCents ?? 0), heldCents: Number(heldCents ?? 0) };
  return { claimId, answered, topUp, card, balance };
}

const lockClaimAndCard = writeStatement(
  (db, { claimId }: { claimId: string }) =>
    db
      .selectFrom('idempotency_claim as c')
      .innerJoin('card as k', 'k.id', 'c.card_id')
      .select(of('k', CARD_COLUMNS))
      .select('c.resource_id as topup_id')
      .select((eb) => eb('c.response_status', 'is not', null).$castTo<boolean>().as('answered'))
      .where('c.id', '=', claimId)
      .$narrowType<{ topup_id: string }>()
      .forNoKeyUpdate(),
  { acrossTenants: 'id' },
);

// Every change of a card's balance holds the card's lock, and the caller has taken it before this statement begins.
const lockTopUp = writeStatement((db, { partnerId, mode, topUpId }: Tenant & { topUpId: string }) =>
  db
    .selectFrom('topup as t')
    .leftJoin('ledger.account as a', (join) =>
      join
        .onRef('a.card_id', '=', 't.card_id')
        .onRef('a.partner_id', '=', 't.partner_id')
        .onRef('a.mode', '=', 't.mode'),
    )
    .select(of('t', TOPUP_COLUMNS))
    .select(['a.posted as card_cents', 'a.held as card_held_cents'])
    .where('t.id', '=', topUpId)
    .where('t.partner_id', '=', partnerId)
    .where('t.mode', '=', mode)
    .forNoKeyUpdate('t'),
);

/**
 * Releases the money of a pending top-up, in the caller's transaction, which holds the account's usage as well.
 * @param refusal the response, if there is none yet: then no top-up is left behind
 */
export async function voidTopUp(
  command: OpenCommand,
  pending: PendingTopUp,
  failure: TopUpFailureCode,
  refusal: ApiError,
): Promise<StoredResponse | null> {
  const { claimId, answered, topUp, balance } = pending;
  const about = { partnerId: topUp.partner_id, mode: topUp.mode, topUpId: topUp.id };
  await uncountTopUp(command.tx, about);
  if (answered) {
    return endTopUp(command, pending, 'void', {
      ...topUp,
      status: 'failed',
      failure_code: failure,
      card_balance_cents: String(balance.balanceCents),
      completed_at: new Date().toISOString(),
    });
  }
  await applyPosting(command.tx, fundingPosting(topUpFunding(topUp), 'void'));
  await deleteTopUp(command.tx, about);
  return storeError(command, claimId, refusal);
}

/** Takes a failed top-up's cents out of its account's usage, on the day they were counted. */
const uncountTopUp = writeStatement(
  (_, { partnerId, mode, topUpId }: Tenant & { topUpId: string }) => sql`
    UPDATE account_usage u SET loaded_cents = u.loaded_cents - t.amount_cents
    FROM topup t
    WHERE t.id = ${topUpId} AND t.partner_id = ${partnerId} AND t.mode = ${mode} AND u.partner_id = t.partner_id
      AND u.mode = t.mode AND u.loaded_on = t.counted_on`,
);

const deleteTopUp = writeStatement((db, { partnerId, mode, topUpId }: Tenant & { topUpId: string }) =>
  db
    .deleteFrom('topup')
    .where('id', '=', topUpId)
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode),
);

/**
 * Ends a pending top-up in the caller's transaction: posts or voids its hold, writes the row and the event, and answers the
 * claim if it has no response yet.
 * @param topUp the row as it will be written
 * @returns the response if there was none yet
 */
async function endTopUp(
  { tx, ring }: OpenCommand,
  { claimId, answered, card, balance }: PendingTopUp,
  phase: 'post' | 'void',
  topUp: TopUpRow,
): Promise<StoredResponse | null> {
  const outcome = topUpOutcome(topUp, card, balance.heldCents);
  await writeEnd(tx, fundingPosting(topUpFunding(topUp), phase), {
    ...boundTopUp(topUp),
    ...claimOutcome(ring, claimId, outcome),
    partnerId: topUp.partner_id,
  });
  return answered ? null : outcomeResponse(outcome);
}

const writeEnd = statementWithPosting(
  (db, topUp: BoundTopUp & OutcomeValues & { partnerId: string }, ledger) => sql`
    WITH done AS (${db
      .updateTable('topup')
      .set({
        status: topUp.status,
        failure_code: topUp.failure_code,
        card_balance_cents: topUp.card_balance_cents,
        completed_at: topUp.completed_at,
        claim_id: null,
        overdue_since: null,
        not_recorded: null,
      })
      .where('id', '=', topUp.id)
      .where('partner_id', '=', topUp.partnerId)
      .where('mode', '=', topUp.mode)
      .where('status', '=', 'pending')
      .returning(['partner_id', 'mode'])}), ${writeClaimOutcome(topUp)}
    SELECT ${ledger.answer} FROM ${ledger.call}`,
);

/** The row of a top-up whose money is on the card. @param balance the card's before @param at the account's time */
export const loadedTopUp = (topUp: TopUpRow, { balanceCents }: CardBalance, at: Date): TopUpRow => ({
  ...topUp,
  status: 'succeeded',
  card_balance_cents: String(balanceCents + Number(topUp.amount_cents)),
  completed_at: at.toISOString(),
});

/**
 * How a top-up ended.
 * @param topUp and card the rows as they will be written
 * @param heldCents what is held of the card's balance
 */
export function topUpOutcome(topUp: TopUpRow, card: CardRow, heldCents: number): Outcome {
  const balanceCents = Number(topUp.card_balance_cents);
  const topup = presentTopUp(topUp, balanceCents);
  return {
    type: topUp.status === 'succeeded' ? 'topup.succeeded' : 'topup.failed',
    mode: topUp.mode,
    cardId: card.id,
    data: { topup, card: presentCard(card, { balanceCents, heldCents }) },
    response: { status: 201, resource: topup },
  };
}

/**
 * How a top-up ended, according to its row.
 * @returns null if there is no row: it was refused, or failed before its request had a response
 */
export async function readTopUpEnd(
  { orm }: CommandContext,
  claimId: string,
): Promise<{ failure: TopUpFailureCode | null } | null> {
  const [topUp] = await topUpEnd(orm.em.fork(), { claimId });
  return topUp === undefined ? null : { failure: topUp.failure_code };
}

const topUpEnd = readStatement(
  (db, { claimId }: { claimId: string }) =>
    db
      .selectFrom('idempotency_claim as c')
      .innerJoin('topup as t', 't.id', 'c.resource_id')
      .select('t.failure_code')
      .where('c.id', '=', claimId),
  { acrossTenants: 'id' },
);

/** A top-up as it is bound to a statement: JSON as text. */
export type BoundTopUp = Omit<TopUpRow, 'fees'> & { fees: string };
export const boundTopUp = (topUp: TopUpRow): BoundTopUp => ({ ...topUp, fees: JSON.stringify(topUp.fees) });

/** What the ledger moves for a top-up. */
export const topUpFunding = (topUp: TopUpRow): Funding => ({
  operationId: `topup/${topUp.id}`,
  partnerId: topUp.partner_id,
  mode: topUp.mode,
  cardId: topUp.card_id,
  load: { step: 'topup', code: 'topup' },
  amountCents: Number(topUp.amount_cents),
  fees: topUp.fees,
});
