import type { z } from 'zod';
import { printable } from '../../domain/fields.ts';
import {
  afterReversal,
  NOWHERE,
  onlyClearing,
  type PaymentEnd,
  type PaymentMerchant,
  type PaymentMovement,
  type PaymentRequest,
  type PaymentSnapshot,
  type UnreadableElement,
} from '../../domain/payment.ts';
import { words } from '../merchant-words.ts';
import {
  AnyElement,
  type CardPayment,
  ELEMENTS,
  type ElementCategory,
  type HeldTransaction,
} from './wire.ts';

/** What happens with a card without money: it is asked about, or its holder is. */
const WITHOUT_MONEY: ReadonlySet<string> = new Set([
  'card_authentication',
  'card_balance_inquiry',
  'card_validation',
]);

/**
 * A card payment of Increase's as a payment (docs/issuers.md, "What a card payment says").
 * @param pending the pending transactions that it names, read before it. One that is not among them is newer
 *   than they are, and holds what was asked for
 */
export function snapshotPayment(
  payment: CardPayment,
  pending: ReadonlyMap<string, Pick<HeldTransaction, 'status' | 'held_amount'>>,
): PaymentSnapshot {
  const requests: PaymentRequest[] = [];
  const movements: PaymentMovement[] = [];
  const unreadable: UnreadableElement[] = [];
  /** By the pending transaction that each request names: what it adds. */
  const asked = new Map<string, number>();
  let authorizedCents = 0;
  let clearedCents = 0;
  let endedBy: PaymentEnd | null = null;
  let expiresAt: string | null = null;
  let isHeldInUsd = true;

  const request = (
    told: { amount: number; real_time_decision_id?: string | null; id: string },
    more: Pick<PaymentRequest, 'approved' | 'merchant'>,
  ) => {
    const decisionId = told.real_time_decision_id ?? null;
    requests.push({
      id: decisionId ?? told.id,
      amountCents: told.amount,
      reason: more.approved ? null : 'declined_by_network',
      by: decisionId === null ? 'network' : 'us',
      ...more,
    });
    if (more.approved) authorizedCents += told.amount;
  };
  const giveBack = (cents: number) => {
    authorizedCents = afterReversal({ authorizedCents, clearedCents }, cents);
    endedBy = 'reversal';
  };
  const hold = (told: { pending_transaction_id: string | null; amount: number; currency: string }) => {
    const id = told.pending_transaction_id;
    if (id === null) return;
    asked.set(id, (asked.get(id) ?? 0) + told.amount);
    isHeldInUsd &&= told.currency === 'USD';
  };

  for (const [index, element] of payment.elements.entries()) {
    const at = element.created_at;
    if (WITHOUT_MONEY.has(element.category)) continue;
    const read = readElement(element);
    if (
      read === null ||
      (read.told.currency !== 'USD' && read.category !== 'card_authorization_expiration')
    ) {
      const { id, amount = null, currency = null } = AnyElement.parse(element[element.category] ?? {});
      if (read?.category === 'card_authorization') hold(read.told);
      const what = printable(element.category);
      unreadable.push({ id: id ?? `${payment.id}/${index}`, what, at, currency, amount });
      continue;
    }
    switch (read.category) {
      case 'card_authorization': {
        const { told } = read;
        if (told.direction === 'refund' || told.amount === 0) break;
        request(told, { approved: true, merchant: merchantOf(told, told.merchant_descriptor) });
        hold(told);
        const ends = new Date(told.expires_at).toISOString();
        if (expiresAt === null || ends > expiresAt) expiresAt = ends;
        break;
      }
      case 'card_increment': {
        const { told } = read;
        if (told.amount === 0) break;
        request(told, { approved: true, merchant: requests.at(-1)?.merchant ?? NOWHERE });
        hold(told);
        break;
      }
      case 'card_decline': {
        const { told } = read;
        // A request for 0 cents leaves no record, and one in the refund direction takes no money.
        if (told.direction === 'refund' || told.amount === 0) break;
        request(told, { approved: false, merchant: merchantOf(told, told.merchant_descriptor) });
        break;
      }
      case 'card_reversal':
        giveBack(read.told.reversal_amount);
        break;
      case 'card_authorization_expiration':
        endedBy = 'expiry';
        break;
      case 'card_fuel_confirmation': {
        const totalCents = read.told.updated_authorization_amount;
        if (totalCents === 0) giveBack(authorizedCents);
        else if (requests.some(({ approved }) => approved)) authorizedCents = totalCents;
        break;
      }
      case 'card_settlement': {
        const { told } = read;
        if (told.amount === 0) break;
        const ofAuthorization = told.card_authorization !== null;
        const merchant = merchantOf(told, told.merchant_name);
        const { id, amount: amountCents } = told;
        movements.push({ id, kind: 'clearing', amountCents, merchant, ofAuthorization, refunds: null });
        if (!ofAuthorization) break;
        clearedCents += amountCents;
        endedBy = 'clearing';
        break;
      }
      case 'card_refund': {
        const { id, amount: amountCents, merchant_name: name } = read.told;
        if (amountCents === 0) break;
        const refunds = onlyClearing(movements);
        const merchant = merchantOf(read.told, name);
        movements.push({ id, kind: 'refund', amountCents, merchant, ofAuthorization: false, refunds });
        break;
      }
      case 'card_financial': {
        const { told } = read;
        if (told.amount === 0) break;
        const { id, amount: amountCents } = told;
        const merchant = merchantOf(told, told.merchant_descriptor);
        const isRefund = told.direction === 'refund';
        // The decision held its amount, and no settlement follows that would take it.
        const ofAuthorization = !isRefund && told.real_time_decision_id !== null;
        if (ofAuthorization) {
          request(told, { approved: true, merchant });
          clearedCents += amountCents;
          endedBy = 'clearing';
        }
        const refunds = isRefund ? onlyClearing(movements) : null;
        const kind = isRefund ? 'refund' : 'clearing';
        movements.push({ id, kind, amountCents, merchant, ofAuthorization, refunds });
        break;
      }
    }
  }

  const held = [...asked].map(([id, cents]) => {
    const known = pending.get(id);
    if (known === undefined) return cents;
    return known.status === 'pending' ? known.held_amount : 0;
  });
  const complete = [...asked.keys()].filter((id) => pending.get(id)?.status === 'complete');
  return {
    paymentId: payment.id,
    networkCardId: payment.card_id,
    version: [payment.elements.length, complete.length],
    requests,
    movements,
    authorizedCents,
    heldCents: isHeldInUsd ? held.reduce((sum, cents) => sum + cents, 0) : null,
    endedBy,
    expiresAt,
    unreadable,
  };
}

/** The pending transactions that a payment names, each with when it did so first: what it holds is in them. */
export function pendingTransactionsOf({ elements }: CardPayment): Map<string, string> {
  const named = new Map<string, string>();
  for (const element of elements) {
    const read = readElement(element);
    if (read === null || !('pending_transaction_id' in read.told)) continue;
    const id = read.told.pending_transaction_id;
    if (id !== null && !named.has(id)) named.set(id, element.created_at);
  }
  return named;
}

type ReadElement = {
  [Category in ElementCategory]: { category: Category; told: z.infer<(typeof ELEMENTS)[Category]> };
}[ElementCategory];

/** @returns null if we don't understand it */
function readElement(element: CardPayment['elements'][number]): ReadElement | null {
  const { category } = element;
  if (!(category in ELEMENTS)) return null;
  const read = ELEMENTS[category as ElementCategory].safeParse(element[category]);
  return read.success ? ({ category, told: read.data } as ReadElement) : null;
}

interface MerchantFields {
  merchant_category_code: string | null;
  merchant_city: string | null;
  merchant_country: string | null;
}

/** The merchant in our words. @param name the descriptor, or the name in a settlement */
export function merchantOf(told: MerchantFields, name: string | null): PaymentMerchant {
  return {
    name: words(name),
    categoryCode: words(told.merchant_category_code),
    city: words(told.merchant_city),
    country: words(told.merchant_country),
  };
}
