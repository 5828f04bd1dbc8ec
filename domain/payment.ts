import type { DeclineReason } from './authorization.ts';

// A payment is all that belongs to one purchase at the card network: what was asked, decided, cleared, given
// back and refunded (docs/decisions/payments.md). Each adapter makes a snapshot of it from what it read; only
// payments/ books.

/** Where a card was used, as far as the network says. */
export interface PaymentMerchant {
  name: string | null;
  categoryCode: string | null;
  city: string | null;
  country: string | null;
}

/** A merchant that the network says nothing of. */
export const NOWHERE: PaymentMerchant = { name: null, categoryCode: null, city: null, country: null };

/** A payment as the network has it now. */
export interface PaymentSnapshot extends PaymentState {
  /** The network's id. */
  paymentId: string;
  networkCardId: string;
  /** In the network's order. */
  requests: readonly PaymentRequest[];
  /** In the network's order, each once. */
  movements: readonly PaymentMovement[];
}

/** A payment that the simulated network has told of: there is nothing that its names are needed for. */
export type UnnamedSnapshot = Omit<PaymentSnapshot, 'paymentId' | 'networkCardId'>;

/** What a network says of a payment as a whole. */
export interface PaymentState {
  /** Grows with the payment, and is compared part by part. */
  version: readonly number[];
  /** What was approved in total, less what was given back. Expiry and clearings leave it. */
  authorizedCents: number;
  /** What the network holds now; null if that can't be put into cents, so that our hold stays as it is. */
  heldCents: number | null;
  /** What ended it last; null if nothing did. */
  endedBy: PaymentEnd | null;
  /** When the network lets it expire; null if it does not say. */
  expiresAt: string | null;
  unreadable: readonly UnreadableElement[];
}

/** All messages of a payment of the simulated network so far, so that each further one costs the same. */
export interface FoldedPayment extends PaymentState {
  heldCents: number;
  /** Whether a request was approved. */
  isAuthorized: boolean;
  /** What was cleared before that, and the last clearing, if that can't be put into cents. */
  early: { cents: number; isFinal: boolean; unreadableId: string | null };
}

/** Whether it is the simulated network's. */
export const isFolded = (state: PaymentState): state is FoldedPayment => 'early' in state;

export type PaymentEnd = 'reversal' | 'expiry' | 'clearing';

/** A merchant's request for money, as the network decided it. */
export interface PaymentRequest {
  /** The network's id, which a decision of ours has too if the network named it when it asked. */
  id: string;
  amountCents: number;
  approved: boolean;
  /** Why it was declined; null if it was approved. */
  reason: DeclineReason | null;
  /** `network`: it says that it did not ask us. `us`: it asked us, or does not say. */
  by: 'us' | 'network';
  merchant: PaymentMerchant;
}

/** What a merchant asks us, over the network. */
export interface Asked {
  /** What names the question, so that it is decided once. */
  key: string;
  /** The network's id of the request; null if it does not name one. */
  id: string | null;
  amountCents: number;
  merchant: PaymentMerchant;
}

/** Money that the network has moved. It is never declined. */
export interface PaymentMovement {
  /** The network's id of the element. */
  id: string;
  kind: 'clearing' | 'refund' | 'refund_reversal';
  amountCents: number;
  merchant: PaymentMerchant;
  /** Whether it takes what the payment's authorization holds. */
  ofAuthorization: boolean;
  /** The movement that a refund gives money back for; null if that is not known. */
  refunds: string | null;
}

/** An element that can't be put into cents: a person says what it means. */
export interface UnreadableElement {
  id: string;
  /** What the network calls it. */
  what: string;
  at: string;
  /** As the network wrote them, in the currency's smallest unit. */
  currency: string | null;
  amount: number | null;
}

/** Whether one version is older than another: by the first part in which they differ. */
export function isOlder(one: readonly number[], other: readonly number[]): boolean {
  const place = other.findIndex((part, index) => part !== one[index]);
  return place !== -1 && (one[place] ?? Number.NEGATIVE_INFINITY) < (other[place] as number);
}

/**
 * The only clearing among these, which a refund that names none gives money back for; null if there are
 * several or none.
 */
export function onlyClearing(movements: readonly PaymentMovement[]): string | null {
  const clearings = movements.filter(({ kind }) => kind === 'clearing');
  return clearings.length === 1 ? (clearings[0]?.id ?? null) : null;
}

/** What is authorized after a reversal, which gives back at most what is not cleared. */
export const afterReversal = (
  { authorizedCents, clearedCents }: { authorizedCents: number; clearedCents: number },
  reversedCents: number,
): number => authorizedCents - Math.min(reversedCents, Math.max(0, authorizedCents - clearedCents));
