import type { PaymentSnapshot } from '../../domain/payment.ts';
import { CardNetworkUnavailable, type UnreadableObject } from '../card-network.ts';
import { orUnreadable } from '../or-unreadable.ts';
import type { TurnClass } from '../request-budget.ts';
import type { IncreaseApi } from './increase-api.ts';
import { pendingTransactionsOf, snapshotPayment } from './snapshot.ts';
import { CardPayment, HeldTransaction, Named } from './wire.ts';

export const AnyPayment = orUnreadable(CardPayment, Named);

/** An object that this release can't read. @param token our id, if that much can be read */
export const toUnreadable = (
  { id, unreadable }: { id: string; unreadable: string[] },
  token: string | null,
): UnreadableObject => ({ networkId: id, token, unreadable });

/** How often what a payment holds is read while the payment keeps changing. */
const MAX_READS = 4;

/**
 * Reads a card payment with what it holds. Increase tells the two apart, so the payment is read before and
 * after its holds: only if nothing has happened in between do they belong together. Of an increment without
 * its hold, the card would spend that money again.
 * @returns null if Increase has no such payment
 * @throws CardNetworkUnavailable if there is no definite answer, or the payment changes all the time
 */
export async function readPayment(
  api: IncreaseApi,
  paymentId: string,
  turn: TurnClass,
): Promise<PaymentSnapshot | UnreadableObject | null> {
  const path = `/card_payments/${encodeURIComponent(paymentId)}`;
  const first = await api.find(path, turn, AnyPayment);
  if (first === null) return null;
  if ('unreadable' in first) return toUnreadable(first, null);
  let payment = first;
  for (let reads = 0; reads < MAX_READS; reads++) {
    const ids = [...pendingTransactionsOf(payment).keys()];
    if (ids.length === 0) return snapshotPayment(payment, new Map());
    const held = new Map<string, HeldTransaction>();
    for (const id of ids) {
      held.set(id, await api.get(`/pending_transactions/${encodeURIComponent(id)}`, turn, HeldTransaction));
    }
    const again = await api.get(path, turn, CardPayment);
    if (again.elements.length === payment.elements.length) return snapshotPayment(again, held);
    payment = again;
  }
  throw new CardNetworkUnavailable(`${paymentId} changed ${MAX_READS} times while it was read`);
}

/** Their clock may be behind ours. */
const MAX_CLOCK_DIFFERENCE_MS = 600_000;

/**
 * Makes snapshots of listed payments with one request for all that they hold, rather than three for each.
 * @returns a function that makes one. What is not pending any more is complete if it is older than this
 * call, and otherwise holds what was asked for, until the payment is read by itself
 */
export async function readHolds(api: IncreaseApi): Promise<(payment: CardPayment) => PaymentSnapshot> {
  const readAtMs = Date.now();
  const pending = new Map<string, HeldTransaction>();
  for await (const one of api.list(
    '/pending_transactions?status.in=pending',
    'reconciliation',
    HeldTransaction,
  ))
    pending.set(one.id, one);
  return (payment) => {
    const held = new Map<string, Pick<HeldTransaction, 'status' | 'held_amount'>>();
    for (const [id, since] of pendingTransactionsOf(payment)) {
      const isOld = Date.parse(since) < readAtMs - MAX_CLOCK_DIFFERENCE_MS;
      const known =
        pending.get(id) ?? (isOld ? ({ status: 'complete', held_amount: 0 } as const) : undefined);
      if (known !== undefined) held.set(id, known);
    }
    return snapshotPayment(payment, held);
  };
}
