import { type RawBuilder, sql } from 'kysely';
import { ApiError } from '../../domain/api-error.ts';
import type { TransferDecision, Verdict } from '../../domain/decision.ts';
import type { Tenant } from '../../domain/mode.ts';
import { applyPosting, statementWithPosting } from '../../ledger/apply-posting.ts';
import { readCardBalance } from '../../ledger/balances.ts';
import { CARD_COLUMNS, of, TRANSFER_COLUMNS } from '../../platform/db/columns.ts';
import {
  cte,
  readStatement,
  type Transactor,
  type Writes,
  withCtes,
  writeStatement,
} from '../../platform/db/sql.ts';
import { transaction } from '../../platform/db/transaction.ts';
import type { CommandContext, OpenCommand } from '../../requests/command-context.ts';
import { recordAudit } from '../../requests/operator-context.ts';
import {
  claimOutcome,
  endClaim,
  type Outcome,
  type OutcomeValues,
  outcomeResponse,
} from '../../requests/outcome.ts';
import { type StoredResponse, storeError, storeResponse } from '../../requests/response.ts';
import { checkDecision, verdictOnMissing } from '../decision.ts';
import { type Funding, fundingPosting } from '../funding-posting.ts';
import { watchDecided } from '../late-answers.ts';
import { releaseBalance } from '../release-balance.ts';
import { type CardBalance, type CardRow, presentCard } from '../resource.ts';
import { lockClaimUsage } from '../terms.ts';
import { presentTransfer, type TransferRow } from './resource.ts';
import type { TransferFailureCode } from './rules.ts';

/**
 * Answers a transfer that is still pending with 202. After this, a failure is a `failed` transfer and an event instead of a
 * refusal.
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
 * The network has moved the money: posts the hold, completes the transfer, writes the event, and answers the claim with 201 if
 * it has no response yet. Whatever the card's status is meanwhile, the network's yes stands. A transfer that is not pending is
 * left as it is.
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
 * The network definitely said no: releases every held cent. If the claim has no response yet, the refusal is its response,
 * 402 `provider_declined`, and no transfer is left behind; after a 202 the transfer is `failed` and an event says so
 * (docs/partners/topups.md, docs/partners/withdrawals.md). A transfer that is not pending is left as it is.
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
 * Applies somebody's decision about a transfer that the network never answered. It has to be past its deadline by
 * `deadlineMs`, and no operator may have decided otherwise. The effect and its audit entry are one transaction. A transfer that
 * is over is left as it is.
 * @param received the decision as the workflow received it
 * @param known.sentBy whom Temporal recorded as the sender of the decision
 */
export function resolveTransfer(
  { orm, ring }: CommandContext,
  claimId: string,
  received: TransferDecision,
  known: { deadlineMs: number; sentBy: string | null },
): Promise<{ verdict: Verdict; response: StoredResponse | null }> {
  return transaction(orm, async (tx) => {
    await lockClaimUsage(tx, { claimId });
    const pending = await lockPendingTransfer(tx, claimId);
    if (pending === null) return { verdict: await verdictOnMissing(tx, claimId), response: null };
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
    await watchDecided(tx, { kind: direction, id, partnerId, cardId, amountCents, fees });
    // An operator's command has written its own audit entry.
    if (!isRecorded) {
      const detail = { partnerId, mode, cardId, outcome, identity: known.sentBy };
      recordAudit(tx, { actor: 'temporal', action: `${direction}.resolve`, subject: id, detail });
    }
    return { verdict: { over: true }, response };
  });
}

/** A pending transfer, whose claim, card and row the transaction holds. */
interface PendingTransfer {
  claimId: string;
  /** Whether its claim has a response. */
  answered: boolean;
  transfer: TransferRow;
  card: CardRow;
  /** The card's. */
  balance: CardBalance;
}

/** Locks a claim and its card, then its transfer. @returns null if that transfer is not pending, or not there */
export async function lockPendingTransfer(tx: Transactor, claimId: string): Promise<PendingTransfer | null> {
  const [claimed] = await lockClaimAndCard(tx, { claimId });
  if (claimed === undefined) return null;
  const { transfer_id: transferId, answered, ...card } = claimed;
  const [locked] = await lockTransfer(tx, { partnerId: card.partner_id, mode: card.mode, transferId });
  if (locked === undefined || locked.status !== 'pending') return null;
  const { card_cents: cardCents, card_held_cents: heldCents, ...transfer } = locked;
  const balance = { balanceCents: Number(cardCents ?? 0), heldCents: Number(heldCents ?? 0) };
  return { claimId, answered, transfer, card, balance };
}

const lockClaimAndCard = writeStatement(
  (db, { claimId }: { claimId: string }) =>
    db
      .selectFrom('idempotency_claim as c')
      .innerJoin('card as k', 'k.id', 'c.card_id')
      .select(of('k', CARD_COLUMNS))
      .select('c.resource_id as transfer_id')
      .select((eb) => eb('c.response_status', 'is not', null).$castTo<boolean>().as('answered'))
      .where('c.id', '=', claimId)
      .$narrowType<{ transfer_id: string }>()
      .forNoKeyUpdate(),
  { acrossTenants: 'id' },
);

// Every change of a card's balance holds the card's lock, and the caller has taken it before this statement begins.
const lockTransfer = writeStatement((db, { partnerId, mode, transferId }: Tenant & { transferId: string }) =>
  db
    .selectFrom('card_transfer as t')
    .leftJoin('ledger.account as a', (join) =>
      join
        .onRef('a.card_id', '=', 't.card_id')
        .onRef('a.partner_id', '=', 't.partner_id')
        .onRef('a.mode', '=', 't.mode'),
    )
    .select(of('t', TRANSFER_COLUMNS))
    .select(['a.posted as card_cents', 'a.held as card_held_cents'])
    .where('t.id', '=', transferId)
    .where('t.partner_id', '=', partnerId)
    .where('t.mode', '=', mode)
    .forNoKeyUpdate('t'),
);

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
 * Releases the money of a pending transfer, in the caller's transaction, which holds the account's usage as well if it is a
 * top-up. On a card that was blocked meanwhile, a withdrawal's money goes where the block sent the rest: to the prepaid balance.
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
    WHERE t.id = ${transferId} AND t.partner_id = ${partnerId} AND t.mode = ${mode} AND u.partner_id = t.partner_id
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

/** A card's balance after a transfer. @param isHeld whether its money was held */
export function balanceAfter(
  { direction, amount_cents: cents }: TransferRow,
  { balanceCents, heldCents }: CardBalance,
  isHeld: boolean,
): CardBalance {
  const amountCents = Number(cents);
  if (direction === 'topup') return { balanceCents: balanceCents + amountCents, heldCents };
  return {
    balanceCents: balanceCents - amountCents,
    heldCents: isHeld ? heldCents - amountCents : heldCents,
  };
}

/** The row of a transfer whose money has moved. @param balance the card's, after that @param at the account's time */
export const succeededTransfer = (
  transfer: TransferRow,
  { balanceCents }: CardBalance,
  at: Date,
): TransferRow => ({
  ...transfer,
  status: 'succeeded',
  failure_code: null,
  card_balance_cents: String(balanceCents),
  completed_at: at.toISOString(),
});

/** How a transfer ended. @param transfer, card and balance as they are afterwards */
export function transferOutcome(transfer: TransferRow, card: CardRow, balance: CardBalance): Outcome {
  const resource = presentTransfer(transfer, balance.balanceCents);
  return {
    type: `${transfer.direction}.${transfer.status === 'succeeded' ? 'succeeded' : 'failed'}`,
    mode: transfer.mode,
    cardId: card.id,
    data: { [transfer.direction]: resource, card: presentCard(card, balance) },
    response: { status: 201, resource },
  };
}

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

/** A transfer as it is bound to a statement: JSON as text. */
export type BoundTransfer = Omit<TransferRow, 'fees'> & { fees: string };
export const boundTransfer = (transfer: TransferRow): BoundTransfer => ({
  ...transfer,
  fees: JSON.stringify(transfer.fees),
});

/** What the ledger moves for a transfer. */
export const transferFunding = (transfer: TransferRow): Funding => ({
  operationId: `${transfer.direction}/${transfer.id}`,
  partnerId: transfer.partner_id,
  mode: transfer.mode,
  cardId: transfer.card_id,
  from: transfer.direction === 'topup' ? 'prepaid' : 'card',
  step: transfer.direction,
  code: transfer.direction,
  amountCents: Number(transfer.amount_cents),
  fees: transfer.fees,
});
