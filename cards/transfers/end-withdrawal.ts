import { sql } from 'kysely';
import { ApiError } from '../../domain/api-error.ts';
import type { Verdict, WithdrawalDecision } from '../../domain/decision.ts';
import type { Tenant } from '../../domain/mode.ts';
import { applyPosting } from '../../ledger/apply-posting.ts';
import { readCardBalance } from '../../ledger/balances.ts';
import { readStatement, writeStatement } from '../../platform/db/sql.ts';
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
import { releaseBalance } from '../block.ts';
import { checkDecision, verdictOnMissing } from '../decision.ts';
import { watchDecided } from '../late-answers.ts';
import { type CardBalance, type CardRow, presentCard } from '../resource.ts';
import { lockPendingWithdrawal, type PendingWithdrawal, withdrawalPosting } from './pending-withdrawal.ts';
import { presentWithdrawal, type WithdrawalRow } from './withdrawal-resource.ts';
import type { WithdrawalFailureCode } from './withdrawal-rules.ts';

/**
 * Answers a withdrawal that is still pending with 202. After this, a failure is a `failed` withdrawal and an event instead of a
 * refusal.
 * @returns the response if this run stored it, as with the functions below
 */
export function acceptWithdrawal(
  { orm, ring }: CommandContext,
  claimId: string,
): Promise<StoredResponse | null> {
  return transaction(orm, async (tx) => {
    const pending = await lockPendingWithdrawal(tx, claimId);
    if (pending === null) return null;
    const { withdrawal, card } = pending;
    const { balanceCents } = await readCardBalance(tx, cardTenant(card), card.id);
    return storeResponse({ tx, ring }, claimId, 202, presentWithdrawal(withdrawal, balanceCents));
  });
}

/**
 * The network has taken the money off the card: posts the hold to the prepaid balance, completes the withdrawal, writes the
 * event, and answers the claim with 201 if it has no response yet. A withdrawal that is not pending is left as it is.
 */
export function completeWithdrawal(
  { orm, ring }: CommandContext,
  claimId: string,
): Promise<StoredResponse | null> {
  return transaction(orm, async (tx) => {
    const pending = await lockPendingWithdrawal(tx, claimId);
    return pending && succeed({ tx, ring }, pending);
  });
}

/**
 * The network definitely said no: releases the hold. If the claim has no response yet, the refusal is its response, 402
 * `provider_declined`, and no withdrawal is left behind; after a 202 the withdrawal is `failed` and an event says so
 * (docs/partners/withdrawals.md). A withdrawal that is not pending is left as it is.
 */
export function failWithdrawal(
  { orm, ring }: CommandContext,
  claimId: string,
  failure: WithdrawalFailureCode,
): Promise<StoredResponse | null> {
  return transaction(orm, async (tx) => {
    const pending = await lockPendingWithdrawal(tx, claimId);
    return pending && fail({ tx, ring }, pending, failure);
  });
}

/**
 * Applies somebody's decision about a withdrawal that the network never answered. It has to be past its deadline by
 * `deadlineMs`, and no operator may have decided otherwise. The effect and its audit entry are one transaction. A withdrawal
 * that is over is left as it is.
 * @param received the decision as the workflow received it
 * @param known.sentBy whom Temporal recorded as the sender of the decision
 */
export function resolveWithdrawal(
  { orm, ring }: CommandContext,
  claimId: string,
  received: WithdrawalDecision,
  known: { deadlineMs: number; sentBy: string | null },
): Promise<{ verdict: Verdict; response: StoredResponse | null }> {
  return transaction(orm, async (tx) => {
    const pending = await lockPendingWithdrawal(tx, claimId);
    if (pending === null) return { verdict: await verdictOnMissing(tx, claimId), response: null };
    const { withdrawal, card } = pending;
    const about = { table: 'withdrawal', id: withdrawal.id } as const;
    const checked = await checkDecision(tx, about, received, known.deadlineMs);
    if ('because' in checked) return { verdict: checked, response: null };
    const { decision, isRecorded } = checked;
    const response =
      decision.outcome === 'failed'
        ? await fail({ tx, ring }, pending, 'operator_failed')
        : await succeed({ tx, ring }, pending);
    const { id, partner_id: partnerId, mode } = withdrawal;
    const amountCents = Number(withdrawal.amount_cents);
    await watchDecided(tx, { kind: 'withdrawal', id, partnerId, cardId: card.id, amountCents, fees: [] });
    // An operator's command has written its own audit entry.
    if (!isRecorded) {
      const { outcome } = decision;
      const detail = { partnerId, mode, cardId: card.id, outcome, identity: known.sentBy };
      recordAudit(tx, { actor: 'temporal', action: 'withdrawal.resolve', subject: id, detail });
    }
    return { verdict: { over: true }, response };
  });
}

/** The money is in the prepaid balance, whatever the card's status is meanwhile: the network's yes stands. */
async function succeed(command: OpenCommand, pending: PendingWithdrawal): Promise<StoredResponse | null> {
  await applyPosting(command.tx, withdrawalPosting(pending.withdrawal, 'post'));
  return writeEnd(command, pending, { status: 'succeeded', failure: null });
}

/**
 * The money is free on the card again; on a card that was blocked meanwhile, it goes where the block sent the rest: to the
 * prepaid balance.
 */
async function fail(
  command: OpenCommand,
  pending: PendingWithdrawal,
  failure: WithdrawalFailureCode,
): Promise<StoredResponse | null> {
  const { tx } = command;
  const { claimId, answered, withdrawal, card } = pending;
  await applyPosting(tx, withdrawalPosting(withdrawal, 'void'));
  if (card.status === 'blocked') await releaseBalance(tx, card, `release/${withdrawal.id}`);
  if (answered) return writeEnd(command, pending, { status: 'failed', failure });
  await deleteRow(tx, { withdrawalId: withdrawal.id });
  return storeError(command, claimId, new ApiError('provider_declined'));
}

const deleteRow = writeStatement(
  (db, { withdrawalId }: { withdrawalId: string }) =>
    db.deleteFrom('withdrawal').where('id', '=', withdrawalId),
  { acrossTenants: 'id' },
);

/**
 * Writes the row and the event of a withdrawal whose money has moved, and answers the claim if it has no response yet.
 * @returns the response if there was none yet
 */
async function writeEnd(
  { tx, ring }: OpenCommand,
  { claimId, answered, withdrawal, card }: PendingWithdrawal,
  { status, failure }: { status: 'succeeded' | 'failed'; failure: WithdrawalFailureCode | null },
): Promise<StoredResponse | null> {
  const balance = await readCardBalance(tx, cardTenant(card), card.id);
  const ended: WithdrawalRow = {
    ...withdrawal,
    status,
    failure_code: failure,
    card_balance_cents: String(balance.balanceCents),
    completed_at: new Date().toISOString(),
  };
  const outcome = withdrawalOutcome(ended, card, balance);
  await writeRow(tx, { ...ended, ...claimOutcome(ring, claimId, outcome) });
  return answered ? null : outcomeResponse(outcome);
}

const writeRow = writeStatement(
  (db, ended: WithdrawalRow & OutcomeValues) => sql`
    WITH done AS (${db
      .updateTable('withdrawal')
      .set({
        status: ended.status,
        failure_code: ended.failure_code,
        card_balance_cents: ended.card_balance_cents,
        completed_at: ended.completed_at,
        claim_id: null,
        overdue_since: null,
        not_recorded: null,
      })
      .where('id', '=', ended.id)
      .where('status', '=', 'pending')
      .returning(['partner_id', 'mode'])}), ${writeClaimOutcome(ended)}
    SELECT FROM done`,
  { acrossTenants: 'id' },
);

/** How a withdrawal ended. @param withdrawal, card and balance as they are afterwards */
export function withdrawalOutcome(withdrawal: WithdrawalRow, card: CardRow, balance: CardBalance): Outcome {
  const resource = presentWithdrawal(withdrawal, balance.balanceCents);
  return {
    type: withdrawal.status === 'succeeded' ? 'withdrawal.succeeded' : 'withdrawal.failed',
    mode: withdrawal.mode,
    cardId: card.id,
    data: { withdrawal: resource, card: presentCard(card, balance) },
    response: { status: 201, resource },
  };
}

/**
 * How a withdrawal ended, according to its row.
 * @returns null if there is no row: it was refused, or failed before its request had a response
 */
export async function readWithdrawalEnd(
  { orm }: CommandContext,
  claimId: string,
): Promise<{ failure: WithdrawalFailureCode | null } | null> {
  const [withdrawal] = await withdrawalEnd(orm.em.fork(), { claimId });
  return withdrawal === undefined ? null : { failure: withdrawal.failure_code };
}

const withdrawalEnd = readStatement(
  (db, { claimId }: { claimId: string }) =>
    db
      .selectFrom('idempotency_claim as c')
      .innerJoin('withdrawal as w', 'w.id', 'c.resource_id')
      .select('w.failure_code')
      .where('c.id', '=', claimId),
  { acrossTenants: 'id' },
);

const cardTenant = ({ partner_id: partnerId, mode }: CardRow): Tenant => ({ partnerId, mode });
