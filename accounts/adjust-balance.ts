import { sql } from 'kysely';
import type { Mode, Tenant } from '../domain/mode.ts';
import { Refusal, unknownId } from '../domain/refusal.ts';
import { applyPosting } from '../ledger/apply-posting.ts';
import { LedgerRejected } from '../ledger/ledger-error.ts';
import type { Balance, Posting } from '../ledger/posting.ts';
import { newId } from '../platform/crypto/new-id.ts';
import type { Row } from '../platform/db/entities.ts';
import { readStatement, type Transactor, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import { type Operator, recordAudit } from '../requests/operator-context.ts';
import { holdClock } from './clock.ts';
import { lockPartner } from './partners.ts';

interface BalanceAdjustment {
  partnerId: string;
  mode: Mode;
  /** Positive for a credit, negative for a debit. */
  amountCents: number;
  reason: string;
  /** Makes the adjustment idempotent within the account and mode. */
  key: string | null;
}

interface AdjustedBalance {
  adjustmentId: string;
  createdAt: Date;
  /** Right after the adjustment. */
  balance: Balance;
}

/** An adjustment that is booked once another operator approves it. */
interface WaitingAdjustment {
  adjustmentId: string;
  createdAt: Date;
  requestedBy: string;
}

/**
 * Credits or debits the prepaid balance by hand. The same adjustment with the same key takes effect once and
 * returns the same result. A large one only waits for another operator (docs/decisions/two-persons.md).
 * @param approvalCents above this amount it waits; null: it never does, unless the database has a limit of
 * its own
 * @throws Refusal if there is no such account, the available balance does not cover a debit, the key was used
 * for a different adjustment, or the adjustment was rejected. Nothing has changed then.
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
    if (key !== null) {
      const [earlier] = await adjustmentWithKey(tx, { partnerId, mode, key });
      if (earlier !== undefined) return book(tx, mustBeSame(earlier, adjustment), adjustment);
      const [request] = await requestWithKey(tx, { partnerId, mode, key });
      if (request !== undefined) return requestedBefore(mustBeSame(request, adjustment));
    }
    const id = newId('adj');
    const detail = { adjustmentId: id, mode, amountCents, reason, key };
    if (await needsApproval(tx, amountCents, approvalCents)) {
      const [created] = await insertRequest(tx, { ...adjustment, id, actor });
      recordAudit(tx, { actor, action: 'adjustment.request', subject: partnerId, detail });
      return { adjustmentId: id, createdAt: new Date(created?.created_at ?? ''), requestedBy: actor };
    }
    const booked = await create(tx, id, adjustment);
    recordAudit(tx, { actor, action: 'partner.adjust', subject: partnerId, detail });
    return booked;
  });
}

/**
 * Approves an adjustment that another operator asked for, and books it, in one transaction. Repeated, it
 * changes nothing and has the same result.
 * @throws Refusal if there is no such request, it was rejected, the same operator or the same login asked for
 * it, or the balance does not allow it. It still waits then, unless it was rejected.
 */
export function approveAdjustment({ orm, actor }: Operator, id: string): Promise<AdjustedBalance> {
  return transaction(orm, async (tx) => {
    const request = await lockRequest(tx, id);
    const adjustment = toAdjustment(request);
    const { partnerId, mode, amountCents, reason, key } = adjustment;
    await holdClock(tx, { partnerId, mode });
    await lockPartner(tx, partnerId);
    if (request.status === 'rejected') {
      throw new Refusal(
        `${id} was rejected by ${request.decided_by} (${request.decision_reason}): if it is right after all, ask for it again ` +
          'with a new key.',
      );
    }
    if (request.requested_by === actor) {
      throw new Refusal(
        `${actor} asked for ${id}, so somebody else has to approve it: they run this with their own OPERATOR.`,
      );
    }
    if (request.status === 'approved')
      return book(tx, { id, created_at: request.decided_at ?? '' }, adjustment);
    if (request.requested_login === request.login) {
      throw new Refusal(
        `${id} was asked for with this login, ${request.login}, so somebody has to approve it with another: "operator login ` +
          'create" makes each operator a login of their own (docs/operating.md, "Logins").',
      );
    }
    await decideRequest(tx, { id, status: 'approved', actor, decisionReason: null });
    const booked = await create(tx, id, adjustment);
    const { requested_by: requestedBy } = request;
    const detail = { adjustmentId: id, mode, amountCents, reason, key, requestedBy };
    recordAudit(tx, { actor, action: 'adjustment.approve', subject: partnerId, detail });
    return booked;
  });
}

/**
 * Rejects an adjustment that waits, so that it is never booked. Whoever asked for it may do so too. Repeated,
 * it changes nothing.
 * @throws Refusal if there is no such request, or it was approved
 */
export function rejectAdjustment(
  { orm, actor }: Operator,
  id: string,
  decisionReason: string,
): Promise<void> {
  return transaction(orm, async (tx) => {
    const request = await lockRequest(tx, id);
    if (request.status === 'rejected') return;
    if (request.status === 'approved') {
      throw new Refusal(
        `${id} was approved by ${request.decided_by} and is booked: to take it back, make an adjustment the other way.`,
      );
    }
    await decideRequest(tx, { id, status: 'rejected', actor, decisionReason });
    const { partnerId, mode, amountCents } = toAdjustment(request);
    const { requested_by: requestedBy } = request;
    const detail = { adjustmentId: id, mode, amountCents, requestedBy, reason: decisionReason };
    recordAudit(tx, { actor, action: 'adjustment.reject', subject: partnerId, detail });
  });
}

interface AdjustmentRow {
  id: string;
  created_at: string;
}

/** Writes the row of an adjustment, and moves its money. */
async function create(tx: Transactor, id: string, adjustment: BalanceAdjustment): Promise<AdjustedBalance> {
  const [created] = await insertAdjustment(tx, { ...adjustment, id });
  return book(tx, created as AdjustmentRow, adjustment);
}

/**
 * Moves the money of an adjustment, once. @returns the balance right after that
 * @throws Refusal if the balance does not cover it, or would exceed its maximum
 */
async function book(
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

/** @throws Refusal if what was found by the key is a different adjustment */
function mustBeSame<Found extends { id: string; amount_cents: string; reason: string }>(
  found: Found,
  { amountCents, reason, key }: BalanceAdjustment,
): Found {
  if (Number(found.amount_cents) === amountCents && found.reason === reason) return found;
  throw new Refusal(
    `The key "${key}" was already used for a different adjustment, ${found.id} of ${found.amount_cents} cents ` +
      `(${found.reason}): use a new key for each adjustment.`,
  );
}

/** @throws Refusal if it was rejected */
function requestedBefore(request: RequestRow): WaitingAdjustment {
  const { id, status, requested_by: requestedBy, created_at } = request;
  if (status !== 'rejected') return { adjustmentId: id, createdAt: new Date(created_at), requestedBy };
  throw new Refusal(
    `${id} was rejected by ${request.decided_by} (${request.decision_reason}), so nothing has changed: if it is right after ` +
      'all, ask for it again with a new key.',
  );
}

/** Whether an amount is above the command line's limit, or the database's, which refuses it by itself. */
export async function needsApproval(
  tx: Transactor,
  amountCents: number,
  approvalCents: number | null,
): Promise<boolean> {
  const [inDatabase] = await databaseLimit(tx, {});
  const limits = [approvalCents, inDatabase === undefined ? null : Number(inDatabase.limit_cents)];
  return limits.some((limit) => limit !== null && Math.abs(amountCents) > limit);
}

const databaseLimit = readStatement((db) => db.selectFrom('adjustment_limit').select('limit_cents'));

type RequestRow = Row<'adjustment_request'>;

const toAdjustment = (request: RequestRow): BalanceAdjustment => ({
  partnerId: request.partner_id,
  mode: request.mode,
  amountCents: Number(request.amount_cents),
  reason: request.reason,
  key: request.key,
});

/** @returns the request, with the login that decides on it. @throws Refusal if there is no such request */
async function lockRequest(tx: Transactor, id: string): Promise<RequestRow & { login: string }> {
  const [request] = await selectForDecision(tx, { id });
  if (request === undefined) throw unknownId('adj', id, 'run "operator adjustment list"');
  return request;
}

const selectForDecision = writeStatement(
  (_, { id }: { id: string }) => sql<RequestRow & { login: string }>`
    SELECT *, session_user AS login FROM adjustment_request WHERE id = ${id} FOR NO KEY UPDATE`,
  { acrossTenants: 'operator' },
);

interface Decided {
  id: string;
  status: 'approved' | 'rejected';
  actor: string;
  decisionReason: string | null;
}

const decideRequest = writeStatement(
  (_, { id, status, actor, decisionReason }: Decided) => sql`
    UPDATE adjustment_request SET status = ${status}, decided_by = ${actor},
      decision_reason = ${decisionReason}
    WHERE id = ${id}`,
  { acrossTenants: 'operator' },
);

const adjustmentWithKey = readStatement(
  (_, { partnerId, mode, key }: Tenant & { key: string }) => sql<
    AdjustmentRow & { amount_cents: string; reason: string }
  >`
    SELECT id, created_at, amount_cents, reason FROM balance_adjustment
    WHERE partner_id = ${partnerId} AND mode = ${mode} AND key = ${key}`,
);

const requestWithKey = readStatement(
  (_, { partnerId, mode, key }: Tenant & { key: string }) => sql<RequestRow>`
    SELECT * FROM adjustment_request WHERE partner_id = ${partnerId} AND mode = ${mode} AND key = ${key}`,
);

const insertAdjustment = writeStatement(
  (
    _,
    { id, partnerId, mode, amountCents, reason, key }: BalanceAdjustment & { id: string },
  ) => sql<AdjustmentRow>`
    INSERT INTO balance_adjustment (id, partner_id, mode, amount_cents, reason, key)
    VALUES (${id}, ${partnerId}, ${mode}, ${amountCents}, ${reason}, ${key}) RETURNING id, created_at`,
);

const insertRequest = writeStatement(
  (
    _,
    {
      id,
      partnerId,
      mode,
      amountCents,
      reason,
      key,
      actor,
    }: BalanceAdjustment & { id: string; actor: string },
  ) => sql<Pick<AdjustmentRow, 'created_at'>>`
    INSERT INTO adjustment_request (id, partner_id, mode, amount_cents, reason, key, requested_by)
    VALUES (${id}, ${partnerId}, ${mode}, ${amountCents}, ${reason}, ${key}, ${actor}) RETURNING created_at`,
);
