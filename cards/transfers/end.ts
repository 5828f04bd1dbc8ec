import { sql } from 'kysely';
import { ApiError } from '../../domain/api-error.ts';
import type { Decision, Verdict } from '../../domain/decision.ts';
import type { Tenant } from '../../domain/mode.ts';
import type { TransferDirection } from '../../domain/transfer.ts';
import { applyPostings, statementWithPosting } from '../../ledger/apply-posting.ts';
import { readCardBalance } from '../../ledger/balances.ts';
import { encodePosting } from '../../ledger/posting.ts';
import { anyOf, cte, withCtes, writeStatement } from '../../platform/db/sql.ts';
import { transaction } from '../../platform/db/transaction.ts';
import type { CommandContext, OpenCommand } from '../../requests/command-context.ts';
import { type AccountColumns, insertEvents, newEvent } from '../../requests/event.ts';
import { recordAudit } from '../../requests/operator-context.ts';
import { claimOutcome, endClaim, type OutcomeValues, outcomeResponse } from '../../requests/outcome.ts';
import { type StoredResponse, storeErrors, storeResponse } from '../../requests/response.ts';
import { checkDecision, verdictOnMissing } from '../decision.ts';
import { fundingPosting } from '../funding-posting.ts';
import { watchEnded } from '../late-answers.ts';
import { releaseBalance } from '../release-balance.ts';
import type { CardRow } from '../resource.ts';
import { lockClaimUsage } from '../terms.ts';
import { type Load, uncountLoads } from '../usage.ts';
import { presentTransfer, type TransferRow } from './resource.ts';
import {
  balanceAfter,
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
    return pending && voidTransfer({ tx, ring }, pending, failure);
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
    const { id, direction, partner_id: partnerId, mode, card_id: cardId } = pending.transfer;
    const checked = await checkDecision(tx, { table: 'card_transfer', id }, received, known.deadlineMs);
    if ('because' in checked) return { verdict: checked, response: null };
    const { decision, isRecorded } = checked;
    const { outcome } = decision;
    const response =
      outcome === 'failed'
        ? await voidTransfer({ tx, ring }, pending, 'operator_failed')
        : await postTransfer({ tx, ring }, pending);
    await watchEnded(tx, [{ ...pending.transfer, kind: direction }]);
    // An operator's command has written its own audit entry.
    if (!isRecorded) {
      const detail = { partnerId, mode, cardId, outcome, identity: known.sentBy };
      recordAudit(tx, { actor: 'temporal', action: `${direction}.resolve`, subject: id, detail });
    }
    return { verdict: { over: true }, response };
  });
}

/** What only a pending transfer has. */
const NO_LONGER_PENDING = { claim_id: null, overdue_since: null, not_recorded: null };

/** Moves the money of a pending transfer, and ends it. @returns the response if there was none yet */
async function postTransfer(command: OpenCommand, pending: PendingTransfer): Promise<StoredResponse | null> {
  const { claimId, answered, transfer, card } = pending;
  const balance = balanceAfter(transfer, pending.balance, true);
  const ended = succeededTransfer(transfer, balance, new Date());
  const outcome = transferOutcome(ended, card, balance);
  const values = { ...ended, ...claimOutcome(command.ring, claimId, outcome) };
  await postAndWriteEnd(command.tx, fundingPosting(transferFunding(ended), 'post'), values);
  return answered ? null : outcomeResponse(outcome);
}

/** {@link voidTransfers} of one that the network or an operator declined. */
async function voidTransfer(
  command: OpenCommand,
  pending: PendingTransfer,
  failure: TransferFailureCode,
): Promise<StoredResponse | null> {
  const why = { failure, refusal: new ApiError('provider_declined') };
  const [response = null] = await voidTransfers(command, pending.card, [pending], why);
  return response;
}

/**
 * Releases the money of pending transfers of one card, in the caller's transaction, which holds the account's
 * usage as well if they are top-ups. On a card that was blocked meanwhile, a withdrawal's money goes where
 * the block sent the rest: to the prepaid balance.
 * @param why.refusal the response of those that have none yet: no transfer is left behind of these
 * @returns these responses, in the order of their transfers
 */
export async function voidTransfers(
  command: OpenCommand,
  card: CardRow,
  pending: readonly Omit<PendingTransfer, 'balance' | 'card'>[],
  { failure, refusal }: { failure: TransferFailureCode; refusal: ApiError },
): Promise<StoredResponse[]> {
  const { tx } = command;
  const tenant = { partnerId: card.partner_id, mode: card.mode };
  const voids = pending.map(({ transfer }) => fundingPosting(transferFunding(transfer), 'void'));
  for (const released of await applyPostings(tx, voids.map(encodePosting))) {
    if (released instanceof Error) throw released;
  }
  for (const { transfer } of pending) {
    if (transfer.direction === 'withdrawal' && card.status === 'blocked')
      await releaseBalance(tx, card, `release/${transfer.id}`);
  }
  const balance = await readCardBalance(tx, tenant, card.id);
  const balanceCents = String(balance.balanceCents);
  const completedAt = new Date().toISOString();
  const refused = pending.filter(({ answered }) => !answered);
  const failed = pending
    .filter(({ answered }) => answered)
    .map(
      ({ transfer }): TransferRow => ({
        ...transfer,
        status: 'failed',
        failure_code: failure,
        card_balance_cents: balanceCents,
        completed_at: completedAt,
      }),
    );
  const events = failed.map((transfer) =>
    newEvent({ ...transferOutcome(transfer, card, balance), clock: null }),
  );
  await writeFailures(tx, {
    ...tenant,
    failedIds: failed.map(({ id }) => id),
    failure,
    balanceCents,
    completedAt,
    events: JSON.stringify(events),
    refusedIds: refused.map(({ transfer }) => transfer.id),
  });
  return storeErrors(command, refused, refusal);
}

type Failures = Tenant & {
  failedIds: string[];
  failure: TransferFailureCode;
  balanceCents: string;
  completedAt: string;
  events: string;
  refusedIds: string[];
};

/** Ends transfers, with their events, deletes those that were refused, and counts none of them any longer. */
const writeFailures = writeStatement((db, values: Failures) => {
  const failed = cte(
    'failed',
    db
      .updateTable('card_transfer')
      .set({
        status: 'failed',
        failure_code: values.failure,
        card_balance_cents: values.balanceCents,
        completed_at: values.completedAt,
        ...NO_LONGER_PENDING,
      })
      .where('id', '=', anyOf(values.failedIds))
      .where('partner_id', '=', values.partnerId)
      .where('mode', '=', values.mode)
      .where('status', '=', 'pending')
      .returning(['partner_id', 'mode', 'amount_cents as cents', 'counted_on']),
  );
  const refused = cte(
    'refused',
    db
      .deleteFrom('card_transfer')
      .where('id', '=', anyOf(values.refusedIds))
      .where('partner_id', '=', values.partnerId)
      .where('mode', '=', values.mode)
      .returning(['partner_id', 'mode', 'amount_cents as cents', 'counted_on']),
  );
  const both = sql<Load>`(SELECT * FROM ${failed.rows} UNION ALL SELECT * FROM ${refused.rows})`;
  const account = sql<AccountColumns>`(SELECT ${values.partnerId}::text AS partner_id, ${values.mode}::text AS mode)`;
  const reported = cte('reported', insertEvents(values.events, account));
  return sql`${withCtes([failed, refused, reported])} ${uncountLoads(both, 0)}`;
});

/** Writes the end of a pending transfer, its event and, if there was none, the response of its claim. */
const postAndWriteEnd = statementWithPosting((db, transfer: TransferRow & OutcomeValues, ledger) => {
  const ended = cte(
    'ended',
    db
      .updateTable('card_transfer')
      .set({
        status: transfer.status,
        card_balance_cents: transfer.card_balance_cents,
        completed_at: transfer.completed_at,
        ...NO_LONGER_PENDING,
      })
      .where('id', '=', transfer.id)
      .where('partner_id', '=', transfer.partner_id)
      .where('mode', '=', transfer.mode)
      .where('status', '=', 'pending')
      .returning(['partner_id', 'mode']),
  );
  return sql`${withCtes([ended, ...endClaim(ended, transfer)])} SELECT ${ledger.answer} FROM ${ledger.call}`;
});
