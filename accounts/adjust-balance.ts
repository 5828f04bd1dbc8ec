import type { Tenant } from '../domain/mode.ts';
import { Refusal } from '../domain/refusal.ts';
import { applyPosting } from '../ledger/apply-posting.ts';
import { LedgerRejected } from '../ledger/ledger-error.ts';
import type { Posting } from '../ledger/posting.ts';
import { newId } from '../platform/crypto/new-id.ts';
import { readStatement, type Transactor, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import { type Operator, recordAudit } from '../requests/operator-context.ts';
import {
  type BalanceAdjustment,
  findRequestByKey,
  needsApproval,
  requestApproval,
  type WaitingAdjustment,
} from './adjustment-requests.ts';
import { holdClock } from './clock.ts';
import { lockPartner } from './partners.ts';
import type { BalanceCents } from './resource.ts';

export interface AdjustedBalance {
  adjustmentId: string;
  createdAt: Date;
  /** Right after the adjustment. */
  balance: BalanceCents;
}

/**
 * Credits or debits the prepaid balance by hand. The same adjustment with the same key takes effect once and returns the
 * same result. A large one only waits for another operator (docs/decisions/two-persons.md).
 * @param approvalCents above this amount it waits; null: it never does, unless the database has a limit of its own
 * @throws Refusal if there is no such account, the available balance does not cover a debit, the key was used for a
 * different adjustment, or the adjustment was rejected. Nothing has changed then.
 */
export function adjustBalance(
  { orm, actor }: Operator,
  adjustment: BalanceAdjustment,
  approvalCents: number | null = null,
): Promise<AdjustedBalance | WaitingAdjustment> {
  const { partnerId, mode, amountCents, reason, key } = adjustment;
  return transaction(orm, async (tx) => {
    await holdClock(tx, { partnerId, mode });
    // Of two adjustments with one key, the second waits here and then finds the first.
    await lockPartner(tx, partnerId);
    const earlier = key === null ? undefined : await findAdjustment(tx, adjustment, key);
    if (earlier !== undefined) return bookAdjustment(tx, earlier, adjustment);
    const requested = await findRequestByKey(tx, adjustment);
    if (requested !== null) return requested;
    if (await needsApproval(tx, amountCents, approvalCents)) return requestApproval(tx, actor, adjustment);
    const created = await createAdjustment(tx, newId('adj'), adjustment);
    const booked = await bookAdjustment(tx, created, adjustment);
    const detail = { adjustmentId: created.id, mode, amountCents, reason, key };
    recordAudit(tx, { actor, action: 'partner.adjust', subject: partnerId, detail });
    return booked;
  });
}

/**
 * Moves the money of an adjustment, once. @returns the balance right after that
 * @throws Refusal if the balance does not cover it, or would exceed its maximum
 */
export async function bookAdjustment(
  tx: Transactor,
  { id, created_at }: AdjustmentRow,
  adjustment: BalanceAdjustment,
): Promise<AdjustedBalance> {
  const { partnerId, mode } = adjustment;
  const moved = await applyPosting(tx, adjustmentOperation(id, adjustment)).catch((error: unknown) => {
    if (!(error instanceof LedgerRejected) || error.reason !== 'balance_out_of_range') throw error;
    throw new Refusal('The balance would exceed its maximum: adjust it by less.');
  });
  if (moved.outcome === 'insufficient_funds') {
    throw new Refusal(
      `The available ${mode} balance does not cover this debit, so nothing has changed: see ` +
        `"operator ledger balance ${partnerId} --mode ${mode}".`,
    );
  }
  if (moved.prepaid === null) throw new Error(`adjustment ${id} did not move the prepaid balance`);
  return { adjustmentId: id, createdAt: new Date(created_at), balance: moved.prepaid };
}

export interface AdjustmentRow {
  id: string;
  created_at: string;
}

/** @throws Refusal if the key was used for a different adjustment. */
async function findAdjustment(
  tx: Transactor,
  { partnerId, mode, amountCents, reason }: BalanceAdjustment,
  key: string,
): Promise<AdjustmentRow | undefined> {
  const [found] = await adjustmentWithKey(tx, { partnerId, mode, key });
  if (found !== undefined && (Number(found.amount_cents) !== amountCents || found.reason !== reason)) {
    throw new Refusal(
      `The key "${key}" was already used for a different adjustment, ${found.id} of ${found.amount_cents} cents ` +
        `(${found.reason}): use a new key for each adjustment.`,
    );
  }
  return found;
}

const adjustmentWithKey = readStatement((db, { partnerId, mode, key }: Tenant & { key: string }) =>
  db
    .selectFrom('balance_adjustment')
    .select(['id', 'created_at', 'amount_cents', 'reason'])
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .where('key', '=', key),
);

/** Only writes the row: {@link bookAdjustment} moves the money. */
export async function createAdjustment(
  tx: Transactor,
  id: string,
  { amountCents, ...adjustment }: BalanceAdjustment,
): Promise<AdjustmentRow> {
  const row = { ...adjustment, id, amountCents: String(amountCents) };
  const [created] = await insertAdjustment(tx, row);
  return created as AdjustmentRow;
}

type NewAdjustment = Omit<BalanceAdjustment, 'amountCents'> & { id: string; amountCents: string };

const insertAdjustment = writeStatement((db, adjustment: NewAdjustment) =>
  db
    .insertInto('balance_adjustment')
    .values({
      id: adjustment.id,
      partner_id: adjustment.partnerId,
      mode: adjustment.mode,
      amount_cents: adjustment.amountCents,
      reason: adjustment.reason,
      key: adjustment.key,
    })
    .returning(['id', 'created_at']),
);

function adjustmentOperation(id: string, { partnerId, mode, amountCents }: BalanceAdjustment): Posting {
  const flow =
    amountCents > 0
      ? ({ code: 'adjustment_credit', debit: 'adjustment', credit: 'prepaid' } as const)
      : ({ code: 'adjustment_debit', debit: 'prepaid', credit: 'adjustment' } as const);
  return {
    operationId: `adjust/${id}`,
    partnerId,
    mode,
    transfers: [{ step: 'adjust', phase: 'single', amountCents: Math.abs(amountCents), ...flow }],
  };
}
