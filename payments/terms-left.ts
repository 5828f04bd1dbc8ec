import { appliedControls } from '../cards/applied-controls.ts';
import type { CardRow } from '../cards/resource.ts';
import { ApiError } from '../domain/api-error.ts';
import { feePlanOf } from '../domain/fees.ts';
import { type AppliedControls, afterSpending } from '../domain/spending-controls.ts';
import type { BookedPayment, PaymentTerms, RefundedTransaction } from './booking-rows.ts';
import type { AskedTerms, RefundRead, TermsRow } from './terms.ts';
import type { TransactionRow } from './transaction-resource.ts';
import { merchantOf } from './transaction-rows.ts';

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

/**
 * What a payment is booked on: as it was read, and after the bookings before it.
 * @throws ApiError `card_not_found`; `idempotency_conflict` if the network has named another card for the
 * payment before
 */
export function toTerms(
  asked: AskedTerms,
  row: TermsRow | undefined,
  left: TermsLeft = nothingBooked(),
): PaymentTerms {
  if (row === undefined || !isOfCard(row)) throw new ApiError('card_not_found');
  const before = asked.payment_id === null ? undefined : left.payments.get(`${row.mode} ${asked.payment_id}`);
  const paymentCardId = before?.payment ? before.card.id : (row.payment?.card_id ?? row.id);
  if (paymentCardId !== row.id) throw usedOtherwise('payment');
  const transactionIds = new Map(Object.entries(row.booked ?? {}));
  for (const { network_transaction_id: networkId, id } of before?.transactions ?? [])
    transactionIds.set(networkId, id);
  const read = { balanceCents: Number(row.card_cents), heldCents: Number(row.card_held_cents) };
  return {
    card: row,
    balance: left.cards.get(row.id) ?? read,
    feePlan: feePlanOf(row.fee_plan),
    prepaidCents: left.accounts.get(accountOf(row)) ?? Number(row.prepaid_cents),
    clock: row.clock,
    authorization: before?.authorization ?? row.authorization,
    payment: before?.payment ?? row.payment,
    handMade: new Map(Object.entries(row.hand_made ?? {})),
    transactionIds,
    controls: controlsLeft(left, row),
    askedAt: new Date(row.asked_at),
    arrivingCents: BigInt(row.refund?.arriving_cents ?? 0),
    refunded: row.refund && refundedLeft(left, row.refund, asked),
  };
}

type CardTermsRow = TermsRow & CardRow;

const isOfCard = (row: TermsRow): row is CardTermsRow => row.id !== null;

/** What is under a used id, and something else. */
export const usedOtherwise = (id: 'message' | 'payment'): ApiError =>
  new ApiError('idempotency_conflict', {
    message:
      `The network has already sent something else under this id of the ${id}, so this was ignored. Compare the two before ` +
      'you send it with another id: if they are the same purchase, that would settle it twice.',
  });

/** What restricts a card, with what it has spent since that was read. */
function controlsLeft(left: TermsLeft, row: CardTermsRow): AppliedControls {
  const since = left.transactions.filter(({ card_id: id }) => id === row.id);
  return since.reduce(
    (controls, moved) => afterSpending(controls, spentCents(moved), moved.merchant_category_code),
    appliedControls(row.spending_controls, row),
  );
}

/** What an authorization's hold has paid counts already. What it gave back is free for the next transaction. */
function spentCents({ type, amount_cents: amount, from_hold_cents: fromHold }: TransactionRow): number {
  if (type === 'decline') return 0;
  return type === 'refund' ? -Number(amount) : Number(amount) - Number(fromHold);
}

/**
 * The purchase that a refund gives money back for, with what was bought and given back since that was read.
 */
function refundedLeft(
  left: TermsLeft,
  { refunded: read, purchases }: RefundRead,
  { card_id: cardId, payment_id: paymentId, refunded_id: named }: AskedTerms,
): RefundedTransaction | null {
  const isBought = (row: TransactionRow) =>
    row.type === 'purchase' && row.card_id === cardId && row.network_payment_id === paymentId;
  const bought = named === undefined && paymentId !== null ? left.transactions.filter(isBought) : [];
  const [first] = bought;
  const refunded = first === undefined ? read : toRefunded(first);
  if (refunded === null || purchases + bought.length > 1) return null;
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
  merchant: merchantOf(row),
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
