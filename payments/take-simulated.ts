import { ApiError } from '../domain/api-error.ts';
import { type DeclineReason, decideDecline } from '../domain/authorization.ts';
import { MAX_AMOUNT_CENTS } from '../domain/money.ts';
import { type FoldedPayment, isFolded } from '../domain/payment.ts';
import { refusalByControls } from '../domain/spending-controls.ts';
import { requireUsable } from '../domain/transaction.ts';
import {
  foldMessage,
  NOTHING_FOLDED,
  type SimulatedMessage,
  snapshotFolded,
} from '../issuers/simulated/fold.ts';
import {
  type BookedPayment,
  bookOn,
  nameBooking,
  type PaymentTerms,
  type RefundedTransaction,
  toPayment,
} from './booking-rows.ts';
import { decideAsked } from './decide-payment.ts';

export interface Simulated {
  message: Omit<SimulatedMessage, 'reason' | 'at' | 'refunds'>;
  /** The network's id of the payment; null for our own, which is that of its authorization. */
  networkPaymentId: string | null;
  ttlMs: number;
  /** A purchase that the network settles even if the card is blocked. */
  forced?: boolean;
  /** A partner simulates a transaction, which takes an active card. */
  isSimulation?: boolean;
  /** The purchase that a refund in test mode gives money back for, as the partner names it. */
  refundedTransactionId?: string | undefined;
}

/** What a message has booked, and why it was declined; null if it was not. */
export type TakenMessage = BookedPayment & { reason: DeclineReason | null };

/**
 * Takes a message of the simulated network, which is folded into its payment and booked: a request and a
 * purchase are decided first. Test mode is this network inside our transaction.
 * @throws ApiError `invalid_state` if the card can't have transactions, `validation_failed` if a refund is not
 * possible or a fee would exceed the largest safe integer
 */
export function takeSimulated(terms: PaymentTerms, simulated: Simulated): TakenMessage {
  const { refunded } = terms;
  const { networkPaymentId, ttlMs, message, refundedTransactionId } = simulated;
  const as = nameBooking(terms, networkPaymentId);
  const isNowhere = Object.values(message.merchant).every((said) => said === null);
  const isNamed = refundedTransactionId !== undefined && refunded !== null;
  const merchant = isNamed && isNowhere ? refunded.merchant : message.merchant;
  const asked = { ...message, merchant, refunds: refunded?.id ?? null, reason: null, at: as.now };
  const { reason, payment } = decide(terms, simulated, asked, as.now);

  const told: SimulatedMessage = { ...asked, reason };
  const folded = foldMessage(foldedBefore(terms), told);
  const snapshot = snapshotFolded(folded, told);
  const booked = bookOn(terms, payment, { snapshot, readAt: null, ttlMs }, as);
  return { ...booked, reason };
}

/** The messages before. What a person has booked of a payment before its first one is none. */
const foldedBefore = ({ payment }: PaymentTerms): FoldedPayment =>
  payment !== null && isFolded(payment.said) ? payment.said : NOTHING_FOLDED;

function decide(terms: PaymentTerms, simulated: Simulated, asked: SimulatedMessage, now: string) {
  const payment = toPayment(terms);
  switch (asked.type) {
    case 'authorization':
    case 'increment':
      requireUsable(terms.card.status);
      return decideRequested(terms, asked, now);
    case 'purchase':
      return { reason: decidePurchase(terms, simulated, asked), payment };
    case 'decline':
      requireUsable(terms.card.status, simulated.isSimulation);
      return { reason: simulated.isSimulation ? ('simulated_decline' as const) : null, payment };
    case 'refund':
      requireUsable(terms.card.status, simulated.isSimulation);
      requireRefundable(terms, simulated);
      return { reason: null, payment };
    default:
      return { reason: null, payment };
  }
}

function decideRequested(terms: PaymentTerms, asked: SimulatedMessage, now: string) {
  const before = foldedBefore(terms);
  // What was cleared of it before it was asked for is paid, and counts already.
  const holdsCents = foldMessage(before, asked).heldCents - before.heldCents;
  const { id, merchant, amountCents } = asked;
  return decideAsked(terms, { key: id, id, amountCents: amountCents ?? 0, merchant }, { holdsCents, now });
}

/** @returns why a purchase is declined; null if it is not */
function decidePurchase(
  { card: { status }, balance, controls }: PaymentTerms,
  { forced = false, isSimulation }: Simulated,
  { amountCents: cents, merchant }: SimulatedMessage,
): DeclineReason | null {
  requireUsable(status, isSimulation);
  if (forced && status === 'blocked') return null;
  const amountCents = cents ?? 0;
  const { categoryCode, country } = merchant;
  const asked = { amountCents, wholeCents: amountCents, categoryCode, country };
  const availableCents = balance.balanceCents - balance.heldCents;
  return decideDecline({ status, availableCents }, amountCents, refusalByControls(controls, asked));
}

/** @throws ApiError `validation_failed` */
function requireRefundable(
  { card, balance, arrivingCents, refunded }: PaymentTerms,
  { message, refundedTransactionId }: Simulated,
): void {
  const amountCents = message.amountCents ?? 0;
  if (refundedTransactionId !== undefined) requireLeft(refunded, amountCents);
  const afterCents = BigInt(balance.balanceCents) + BigInt(amountCents) + arrivingCents;
  if (card.status !== 'blocked' && afterCents > BigInt(MAX_AMOUNT_CENTS)) {
    throw ApiError.ofField(
      'amount',
      `amount would take the card's balance above the maximum of ${MAX_AMOUNT_CENTS} cents`,
    );
  }
}

function requireLeft(refunded: RefundedTransaction | null, amountCents: number): void {
  if (refunded === null)
    throw ApiError.ofField('transaction_id', 'transaction_id is no transaction of this card');
  if (refunded.type !== 'purchase')
    throw ApiError.ofField(
      'transaction_id',
      `transaction_id is a ${refunded.type}: only a purchase can be refunded`,
    );
  const leftCents = refunded.amountCents - refunded.givenBackCents;
  if (leftCents <= 0)
    throw ApiError.ofField(
      'transaction_id',
      'transaction_id is a purchase that was already refunded in full',
    );
  if (amountCents > leftCents)
    throw ApiError.ofField(
      'amount',
      `amount is more than the ${leftCents} cents of the purchase that are left to refund`,
    );
}
