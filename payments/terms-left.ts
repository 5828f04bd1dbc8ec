import { appliedControls, type ControlsColumns } from '../cards/applied-controls.ts';
import type { CardRow } from '../cards/resource.ts';
import { type AppliedControls, afterSpending } from '../domain/spending-controls.ts';
import type { BookedPayment, PaymentTerms } from './booking-rows.ts';
import type { RefundedTransaction } from './refunded.ts';
import { type TermsRead, toTerms } from './terms.ts';
import type { TransactionRow } from './transaction-resource.ts';

/** What a transaction's bookings leave to those after them: of one card, one account, or one payment. */
export interface TermsLeft {
  cards: Map<string, PaymentTerms['balance']>;
  accounts: Map<string, number>;
  payments: Map<string, BookedPayment>;
  /** Of all cards, in their order. */
  transactions: TransactionRow[];
}

export const nothingBooked = (): TermsLeft => ({
  cards: new Map(),
  accounts: new Map(),
  payments: new Map(),
  transactions: [],
});

type Whose = Pick<PaymentTerms, 'card' | 'clock'> & {
  /** The network's id of the payment; null of one that is by itself. */
  paymentId: string | null;
};

/** What a payment is booked on, after the bookings before it. */
export function termsLeft(left: TermsLeft, { card, clock, paymentId }: Whose, read: TermsRead): PaymentTerms {
  const terms = toTerms(card, clock, read);
  const before = paymentId === null ? undefined : left.payments.get(`${card.mode} ${paymentId}`);
  return {
    ...terms,
    balance: left.cards.get(card.id) ?? terms.balance,
    prepaidCents: left.accounts.get(accountOf(card)) ?? terms.prepaidCents,
    authorization: before?.authorization ?? terms.authorization,
    payment: before?.payment ?? terms.payment,
  };
}

/** What restricts a card, with what it has spent since that was read. */
export function controlsLeft(left: TermsLeft, card: CardRow, read: ControlsColumns): AppliedControls {
  const since = left.transactions.filter(({ card_id: id }) => id === card.id);
  return since.reduce(
    (controls, row) => afterSpending(controls, spentCents(row), row.merchant_category_code),
    appliedControls(card.spending_controls, read),
  );
}

/** What an authorization's hold has paid counts already. What it gave back is free for the next transaction. */
function spentCents({ type, amount_cents: amount, from_hold_cents: fromHold }: TransactionRow): number {
  if (type === 'decline') return 0;
  return type === 'refund' ? -Number(amount) : Number(amount) - Number(fromHold);
}

/** What is read of the purchase that a refund gives money back for: the only one of its payment, unless it is named. */
export interface RefundRead {
  refunded: RefundedTransaction | null;
  /** How many purchases its payment has; 0 if the refund names one. */
  purchases: number;
}

/**
 * The purchase that a refund gives money back for, with what was bought and given back since that was read.
 * @param paymentId null if the refund names it
 */
export function refundedLeft(
  left: TermsLeft,
  read: RefundRead,
  { cardId, paymentId }: { cardId: string; paymentId: string | null },
): RefundedTransaction | null {
  const bought = left.transactions.filter(
    ({ type, card_id, network_payment_id: id }) =>
      type === 'purchase' && card_id === cardId && id !== null && id === paymentId,
  );
  const [first] = bought;
  const refunded = first === undefined ? read.refunded : toRefunded(first);
  if (refunded === null || read.purchases + bought.length > 1) return null;
  const refunds = left.transactions.filter(({ refunded_transaction_id: id }) => id === refunded.id);
  const givenBackCents = refunds.reduce(
    (sum, row) => sum + Number(row.amount_cents),
    refunded.givenBackCents,
  );
  return { ...refunded, givenBackCents };
}

const toRefunded = (row: TransactionRow): RefundedTransaction => ({
  id: row.id,
  type: row.type,
  amountCents: Number(row.amount_cents),
  givenBackCents: 0,
  merchant: {
    name: row.merchant_name,
    categoryCode: row.merchant_category_code,
    city: row.merchant_city,
    country: row.merchant_country,
  },
});

/** Leaves what a booking has changed to those after it. */
export function leaveTerms(left: TermsLeft, paymentId: string | null, booked: BookedPayment): void {
  const { card, balance, prepaidCents, transactions } = booked;
  left.cards.set(card.id, balance);
  left.transactions.push(...transactions);
  left.accounts.set(accountOf(card), prepaidCents);
  if (paymentId !== null) left.payments.set(`${card.mode} ${paymentId}`, booked);
}

const accountOf = ({ mode, partner_id: partnerId }: PaymentTerms['card']): string => `${mode} ${partnerId}`;
