import { feePlanOf } from '../domain/fees.ts';
import type { AuthorizationRow } from './authorization-resource.ts';
import type { BookedPayment, PaymentRow, PaymentTerms } from './booking-rows.ts';

/** What a transaction's bookings leave to those after them: of one card, one account, or one payment. */
export interface TermsLeft {
  cards: Map<string, PaymentTerms['balance']>;
  accounts: Map<string, number>;
  payments: Map<string, BookedPayment>;
}

export const nothingBooked = (): TermsLeft => ({
  cards: new Map(),
  accounts: new Map(),
  payments: new Map(),
});

/** What is read of a payment before the first booking. */
export interface TermsRead {
  card_cents: string;
  card_held_cents: string;
  prepaid_cents: string;
  fee_plan: unknown;
  payment: PaymentRow | null;
  authorization: AuthorizationRow | null;
}

type Whose = Pick<PaymentTerms, 'card' | 'clock'> & {
  /** The network's id of the payment; null of one that is by itself. */
  paymentId: string | null;
};

/** What a payment is booked on, after the bookings before it. */
export function termsLeft(left: TermsLeft, { card, clock, paymentId }: Whose, read: TermsRead): PaymentTerms {
  const before = paymentId === null ? undefined : left.payments.get(`${card.mode} ${paymentId}`);
  return {
    card,
    balance: left.cards.get(card.id) ?? {
      balanceCents: Number(read.card_cents),
      heldCents: Number(read.card_held_cents),
    },
    prepaidCents: left.accounts.get(accountOf(card)) ?? Number(read.prepaid_cents),
    feePlan: feePlanOf(read.fee_plan),
    clock,
    authorization: before?.authorization ?? read.authorization,
    payment: before?.payment ?? read.payment,
  };
}

/** Leaves what a booking has changed to those after it. */
export function leaveTerms(left: TermsLeft, paymentId: string | null, booked: BookedPayment): void {
  const { card, balance, prepaidCents } = booked;
  left.cards.set(card.id, balance);
  left.accounts.set(accountOf(card), prepaidCents);
  if (paymentId !== null) left.payments.set(`${card.mode} ${paymentId}`, booked);
}

const accountOf = ({ mode, partner_id: partnerId }: PaymentTerms['card']): string => `${mode} ${partnerId}`;
