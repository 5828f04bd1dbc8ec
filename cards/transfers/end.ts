import { type RawBuilder, sql } from 'kysely';
import { ApiError } from '../../domain/api-error.ts';
import type { Decision, Verdict } from '../../domain/decision.ts';
import type { Tenant } from '../../domain/mode.ts';
import type { TransferDirection } from '../../domain/transfer.ts';
import { applyPosting, statementWithPosting } from '../../ledger/apply-posting.ts';
import { readCardBalance } from '../../ledger/balances.ts';
import { cte, readStatement, type Writes, withCtes, writeStatement } from '../../platform/db/sql.ts';
import { transaction } from '../../platform/db/transaction.ts';
import type { CommandContext, OpenCommand } from '../../requests/command-context.ts';
import { recordAudit } from '../../requests/operator-context.ts';
import { claimOutcome, endClaim, type OutcomeValues, outcomeResponse } from '../../requests/outcome.ts';
import { type StoredResponse, storeError, storeResponse } from '../../requests/response.ts';
import { checkDecision, verdictOnMissing } from '../decision.ts';
import { fundingPosting } from '../funding-posting.ts';
import { watchEnded } from '../late-answers.ts';
import { releaseBalance } from '../release-balance.ts';
import { lockClaimUsage } from '../terms.ts';
import { presentTransfer, type TransferRow } from './resource.ts';
import {
  type BoundTransfer,
  balanceAfter,
  boundTransfer,
  lockPendingTransfer,
  type PendingTransfer,
  succeededTransfer,
  transferFunding,
  transferOutcome,
} from './row.ts';
import type { TransferFailureCode } from './rules.ts';

/**
 * Answers a transfer that is still pending with 202. After this, a failure is a `failed` transfer and an
 * event instead of a refusal.
 * @returns the response if this run stored it, as with the functions below
 */
export function acceptTransfer(
  { orm, ring }: CommandContext,
  claimId: string,
): Promise<StoredResponse | null> {
  return transaction(orm, async (tx) => {
    const pending = await lockPendingTransfer(tx, claimId);
    if (pending === null) return null;
    const { transfer, balance } = pending;
    return storeResponse({ tx, ring }, claimId, 202, presentTransfer(transfer, balance.balanceCents));
  });
}

/**
 * The network has moved the money: posts the hold, completes the transfer, writes the event, and answers the
 * claim with 201 if it has no response yet. Whatever the card's status is meanwhile, the network's yes
 * stands. A transfer that is not pending is left as it is.
 */
export function completeTransfer(
  { orm, ring }: CommandContext,
  claimId: string,
): Promise<StoredResponse | null> {
  return transaction(orm, async (tx) => {
    const pending = await lockPendingTransfer(tx, claimId);
    return pending && postTransfer({ tx, ring }, pending);
  });
}

/**
 * The network definitely said no: releases every held cent. If the claim has no response yet, the refusal is
 * its response, 402 `provider_declined`, and no transfer is left behind; after a 202 the transfer is `failed`
 * and an event says so (docs/partners/topups.md, docs/partners/withdrawals.md). A transfer that is not
 * pending is left as it is.
 */
export function failTransfer(
  { orm, ring }: CommandContext,
  claimId: string,
  failure: TransferFailureCode,
): Promise<StoredResponse | null> {
  return transaction(orm, async (tx) => {
    await lockClaimUsage(tx, { claimId });
    const pending = await lockPendingTransfer(tx, claimId);
    return pending && voidTransfer({ tx, ring }, pending, failure, new ApiError('provider_declined'));
  });
}

/**
 * Applies somebody's decision about a transfer that the network never answered. It has to be past its
 * deadline by `deadlineMs`, and no operator may have decided otherwise. The effect and its audit entry are
 * one transaction. A transfer that is over is left as it is.
 * @param received the decision as the workflow received it
 * @param known.direction what the workflow is for
 * @param known.sentBy whom Temporal recorded as the sender of the decision
 */
export function resolveTransfer(
  { orm, ring }: CommandContext,
  claimId: string,
  received: Decision,
  known: { direction: TransferDirection; deadlineMs: number; sentBy: string | null },
): Promise<{ verdict: Verdict; response: StoredResponse | null }> {
  return transaction(orm, async (tx) => {
    await lockClaimUsage(tx, { claimId });
    const pending = await lockPendingTransfer(tx, claimId);
    if (pending?.transfer.direction !== known.direction)
      return { verdict: await verdictOnMissing(tx, claimId), response: null };
    const {
      id,
      direction,
      partner_id: partnerId,
      mode,
      card_id: cardId,
      fees,
      ...transfer
    } = pending.transfer;
    const checked = await checkDecision(tx, { table: 'card_transfer', id }, received, known.deadlineMs);
    if ('because' in checked) return { verdict: checked, response: null };
    const { decision, isRecorded } = checked;
    const { outcome } = decision;
    const response =
      outcome === 'failed'
        ? await voidTransfer({ tx, ring }, pending, 'operator_failed', new ApiError('provider_declined'))
        : await postTransfer({ tx, ring }, pending);
    const amountCents = Number(transfer.amount_cents);
    await watchEnded(tx, { kind: direction, id, partnerId, cardId, amountCents, fees });
    // An operator's command has written its own audit entry.
    if (!isRecorded) {
      const detail = { partnerId, mode, cardId, outcome, identity: known.sentBy };
      recordAudit(tx, { actor: 'temporal', action: `${direction}.resolve`, subject: id, detail });
    }
    return { verdict: { over: true }, response };
  });
}

/** Moves the money of a pending transfer, and ends it. @returns the response if there was none yet */
async function postTransfer(command: OpenCommand, pending: PendingTransfer): Promise<StoredResponse | null> {
  const { claimId, answered, transfer, card } = pending;
  const balance = balanceAfter(transfer, pending.balance, true);
  const ended = succeededTransfer(transfer, balance, new Date());
  const outcome = transferOutcome(ended, card, balance);
  const values = { ...boundTransfer(ended), ...claimOutcome(command.ring, claimId, outcome) };
  await postAndWriteEnd(command.tx, fundingPosting(transferFunding(ended), 'post'), values);
  return answered ? null : outcomeResponse(outcome);
}

/**
 * Releases the money of a pending transfer, in the caller's transaction, which holds the account's usage as
 * well if it is a top-up. On a card that was blocked meanwhile, a withdrawal's money goes where the block
 * sent the rest: to the prepaid balance.
 * @param refusal the response, if there is none yet: then no transfer is left behind
 */
export async function voidTransfer(
  { tx, ring }: OpenCommand,
  { claimId, answered, transfer, card }: Omit<PendingTransfer, 'balance'>,
  failure: TransferFailureCode,
  refusal: ApiError,
): Promise<StoredResponse | null> {
  const tenant = { partnerId: transfer.partner_id, mode: transfer.mode };
  await uncountTransfer(tx, { ...tenant, transferId: transfer.id });
  await applyPosting(tx, fundingPosting(transferFunding(transfer), 'void'));
  if (transfer.direction === 'withdrawal' && card.status === 'blocked')
    await releaseBalance(tx, card, `release/${transfer.id}`);
  if (!answered) {
    await deleteTransfer(tx, { ...tenant, transferId: transfer.id });
    return storeError({ tx, ring }, claimId, refusal);
  }
  const balance = await readCardBalance(tx, tenant, card.id);
  const ended: TransferRow = {
    ...transfer,
    status: 'failed',
    failure_code: failure,
    card_balance_cents: String(balance.balanceCents),
    completed_at: new Date().toISOString(),
  };
  const outcome = transferOutcome(ended, card, balance);
  await writeEnd(tx, { ...boundTransfer(ended), ...claimOutcome(ring, claimId, outcome) });
  return null;
}

/** Takes a failed top-up's cents out of its account's usage, on the day they were counted. */
const uncountTransfer = writeStatement(
  (_, { partnerId, mode, transferId }: Tenant & { transferId: string }) => sql`
    UPDATE account_usage u SET loaded_cents = u.loaded_cents - t.amount_cents
    FROM card_transfer t
    WHERE t.id = ${transferId} AND t.partner_id = ${partnerId} AND t.mode = ${mode}
      AND u.partner_id = t.partner_id
      AND u.mode = t.mode AND u.loaded_on = t.counted_on`,
);

const deleteTransfer = writeStatement(
  (db, { partnerId, mode, transferId }: Tenant & { transferId: string }) =>
    db
      .deleteFrom('card_transfer')
      .where('id', '=', transferId)
      .where('partner_id', '=', partnerId)
      .where('mode', '=', mode),
);

type EndValues = BoundTransfer & OutcomeValues;

/** Writes the end of a pending transfer, its event and, if there was none, the response of its claim. */
function endTransfer(db: Writes, transfer: EndValues): RawBuilder<unknown> {
  const ended = cte(
    'ended',
    db
      .updateTable('card_transfer')
      .set({
        status: transfer.status,
        failure_code: transfer.failure_code,
        card_balance_cents: transfer.card_balance_cents,
        completed_at: transfer.completed_at,
        claim_id: null,
        overdue_since: null,
        not_recorded: null,
      })
      .where('id', '=', transfer.id)
      .where('partner_id', '=', transfer.partner_id)
      .where('mode', '=', transfer.mode)
      .where('status', '=', 'pending')
      .returning(['partner_id', 'mode']),
  );
  return withCtes([ended, ...endClaim(ended, transfer)]);
}

const postAndWriteEnd = statementWithPosting(
  (db, transfer: EndValues, ledger) => sql`
    ${endTransfer(db, transfer)} SELECT ${ledger.answer} FROM ${ledger.call}`,
);

const writeEnd = writeStatement((db, transfer: EndValues) => sql`${endTransfer(db, transfer)} SELECT`);

/**
 * How a transfer ended, according to its row.
 * @returns null if there is no row: it was refused, or failed before its request had a response
 */
export async function readTransferEnd(
  { orm }: CommandContext,
  claimId: string,
): Promise<{ failure: TransferFailureCode | null } | null> {
  const [transfer] = await transferEnd(orm.em.fork(), { claimId });
  return transfer === undefined ? null : { failure: transfer.failure_code };
}

const transferEnd = readStatement(
  (db, { claimId }: { claimId: string }) =>
    db
      .selectFrom('idempotency_claim as c')
      .innerJoin('card_transfer as t', 't.id', 'c.resource_id')
      .select('t.failure_code')
      .where('c.id', '=', claimId),
  { acrossTenants: 'id' },
);
