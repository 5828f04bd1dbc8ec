import { sql } from 'kysely';
import type { Mode, Tenant } from '../domain/mode.ts';
import { Refusal, unknownId } from '../domain/refusal.ts';
import { newId } from '../platform/crypto/new-id.ts';
import type { Row } from '../platform/db/entities.ts';
import { readStatement, type Transactor, writeStatement } from '../platform/db/sql.ts';
import { recordAudit } from '../requests/operator-context.ts';

export interface BalanceAdjustment {
  partnerId: string;
  mode: Mode;
  /** Positive for a credit, negative for a debit. */
  amountCents: number;
  reason: string;
  /** Makes the adjustment idempotent within the account and mode. */
  key: string | null;
}

/** An adjustment that is booked once another operator approves it. */
export interface WaitingAdjustment {
  adjustmentId: string;
  createdAt: Date;
  requestedBy: string;
}

/** Whether an adjustment is above the command line's limit, or the database's, which refuses it by itself. */
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

/** Records an adjustment that another operator has to approve. */
export async function requestApproval(
  tx: Transactor,
  actor: string,
  { partnerId, mode, amountCents, reason, key }: BalanceAdjustment,
): Promise<WaitingAdjustment> {
  const id = newId('adj');
  const values = { id, partnerId, mode, amountCents: String(amountCents), reason, key, actor };
  const [created] = await insertRequest(tx, values);
  recordAudit(tx, {
    actor,
    action: 'adjustment.request',
    subject: partnerId,
    detail: {
      adjustmentId: id,
      mode,
      amountCents,
      reason,
      key,
    },
  });
  return { adjustmentId: id, createdAt: new Date(created?.created_at ?? ''), requestedBy: actor };
}

const insertRequest = writeStatement(
  (
    db,
    request: Tenant & { id: string; amountCents: string; reason: string; key: string | null; actor: string },
  ) =>
    db
      .insertInto('adjustment_request')
      .values({
        id: request.id,
        partner_id: request.partnerId,
        mode: request.mode,
        amount_cents: request.amountCents,
        reason: request.reason,
        key: request.key,
        requested_by: request.actor,
      })
      .returning('created_at'),
);

/**
 * The request that was made with an adjustment's key; null if there is none.
 * @throws Refusal if it was a different one, or was rejected
 */
export async function findRequestByKey(
  tx: Transactor,
  { partnerId, mode, amountCents, reason, key }: BalanceAdjustment,
): Promise<WaitingAdjustment | null> {
  if (key === null) return null;
  const [found] = await requestWithKey(tx, { partnerId, mode, key });
  if (found === undefined) return null;
  if (Number(found.amount_cents) !== amountCents || found.reason !== reason) {
    throw new Refusal(
      `The key "${key}" was already used for a different adjustment, ${found.id} of ${found.amount_cents} cents ` +
        `(${found.reason}): use a new key for each adjustment.`,
    );
  }
  if (found.status === 'rejected') {
    throw new Refusal(
      `${found.id} was rejected by ${found.decided_by} (${found.decision_reason}), so nothing has changed: if it is right ` +
        'after all, ask for it again with a new key.',
    );
  }
  return { adjustmentId: found.id, createdAt: new Date(found.created_at), requestedBy: found.requested_by };
}

const requestWithKey = readStatement((db, { partnerId, mode, key }: Tenant & { key: string }) =>
  db
    .selectFrom('adjustment_request')
    .selectAll()
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .where('key', '=', key),
);

export type AdjustmentRequestRow = Row<'adjustment_request'>;

/** @returns the request, with the login that asks for it. @throws Refusal if there is no such request */
export async function lockRequest(
  tx: Transactor,
  id: string,
): Promise<AdjustmentRequestRow & { login: string }> {
  const [request] = await lock(tx, { id });
  if (request === undefined) throw unknownId('adj', id, 'run "operator adjustment list"');
  return request;
}

const lock = writeStatement(
  (db, { id }: { id: string }) =>
    db
      .selectFrom('adjustment_request')
      .selectAll()
      .select(sql<string>`session_user`.as('login'))
      .where('id', '=', id)
      .forNoKeyUpdate(),
  { acrossTenants: 'operator' },
);

export const decideRequest = writeStatement(
  (
    db,
    decision: { id: string; status: 'approved' | 'rejected'; actor: string; decisionReason: string | null },
  ) =>
    db
      .updateTable('adjustment_request')
      .set({
        status: decision.status,
        decided_by: decision.actor,
        decision_reason: decision.decisionReason,
      })
      .where('id', '=', decision.id),
  { acrossTenants: 'operator' },
);
