import type { PaymentSnapshot } from '../../domain/payment.ts';
import type { TurnClass } from '../request-budget.ts';
import type { IncreaseApi } from './increase-api.ts';
import { pendingTransactionsOf, snapshotPayment } from './snapshot.ts';
import { HeldTransaction, WholePayment } from './wire.ts';

/**
 * Reads a card payment. What it holds is read before the payment that is booked: what happens in between errs
 * on the side of holding, and its own message makes it right.
 * @returns null if Increase has no such payment
 * @throws CardNetworkUnavailable if there is no definite answer
 */
export async function readPayment(
  api: IncreaseApi,
  paymentId: string,
  turn: TurnClass,
): Promise<PaymentSnapshot | null> {
  const path = `/card_payments/${encodeURIComponent(paymentId)}`;
  const first = await api.find(path, turn, WholePayment);
  if (first === null) return null;
  const ids = pendingTransactionsOf(first);
  if (ids.length === 0) return snapshotPayment(first, new Map());
  const held = new Map<string, HeldTransaction>();
  for (const id of ids) {
    held.set(id, await api.get(`/pending_transactions/${encodeURIComponent(id)}`, turn, HeldTransaction));
  }
  return snapshotPayment(await api.get(path, turn, WholePayment), held);
}
