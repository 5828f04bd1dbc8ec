import { Refusal } from '../domain/refusal.ts';
import { transaction } from '../platform/db/transaction.ts';
import { type Operator, recordAudit } from '../requests/operator-context.ts';
import { type AdjustedBalance, bookAdjustment, createAdjustment } from './adjust-balance.ts';
import {
  type AdjustmentRequestRow,
  type BalanceAdjustment,
  decideRequest,
  lockRequest,
} from './adjustment-requests.ts';
import { holdClock } from './clock.ts';
import { lockPartner } from './partners.ts';

/**
 * Approves an adjustment that another operator asked for, and books it, in one transaction. Repeated, it changes nothing and
 * has the same result.
 * @throws Refusal if there is no such request, it was rejected, the same operator or the same login asked for it, or the balance
 * does not allow it. It still waits then, unless it was rejected.
 */
export function approveAdjustment({ orm, actor }: Operator, id: string): Promise<AdjustedBalance> {
  return transaction(orm, async (tx) => {
    const request = await lockRequest(tx, id);
    const adjustment = toAdjustment(request);
    const { partnerId, mode, amountCents, reason, key } = adjustment;
    await holdClock(tx, { partnerId, mode });
    await lockPartner(tx, partnerId);
    if (request.status === 'rejected') throw new Refusal(rejectedBefore(request));
    if (request.requested_by === actor) {
      throw new Refusal(
        `${actor} asked for ${id}, so somebody else has to approve it: they run this with their own OPERATOR.`,
      );
    }
    if (request.status === 'approved') {
      return bookAdjustment(tx, { id, created_at: request.decided_at ?? '' }, adjustment);
    }
    if (request.requested_login === request.login) {
      throw new Refusal(
        `${id} was asked for with this login, ${request.login}, so somebody has to approve it with another: "operator login ` +
          'create" makes each operator a login of their own (docs/operating.md, "Logins").',
      );
    }
    await decideRequest(tx, { id, status: 'approved', actor, decisionReason: null });
    const created = await createAdjustment(tx, id, adjustment);
    const booked = await bookAdjustment(tx, created, adjustment);
    const { requested_by: requestedBy } = request;
    const detail = { adjustmentId: id, mode, amountCents, reason, key, requestedBy };
    recordAudit(tx, { actor, action: 'adjustment.approve', subject: partnerId, detail });
    return booked;
  });
}

/**
 * Rejects an adjustment that waits, so that it is never booked. Whoever asked for it may do so too. Repeated, it changes
 * nothing.
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

const toAdjustment = (request: AdjustmentRequestRow): BalanceAdjustment => ({
  partnerId: request.partner_id,
  mode: request.mode,
  amountCents: Number(request.amount_cents),
  reason: request.reason,
  key: request.key,
});

const rejectedBefore = ({ id, decided_by, decision_reason }: AdjustmentRequestRow): string =>
  `${id} was rejected by ${decided_by} (${decision_reason}): if it is right after all, ask for it again with a new key.`;
