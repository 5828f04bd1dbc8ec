import { isDeepStrictEqual } from 'node:util';
import { decisionTime } from '../cards/applied-controls.ts';
import { releasePosting } from '../cards/release-balance.ts';
import type { CardBalance, CardRow } from '../cards/resource.ts';
import { type AccountClock, accountTime } from '../domain/account-clock.ts';
import { type AuthorizationRequest, MAX_REQUESTS } from '../domain/authorization.ts';
import type { FeePlan } from '../domain/fees.ts';
import { isFolded, NOWHERE, type PaymentMerchant } from '../domain/payment.ts';
import type { AppliedControls } from '../domain/spending-controls.ts';
import type { TransactionType } from '../domain/transaction.ts';
import type { Posting, Transfer } from '../ledger/posting.ts';
import { newId, readIdTime } from '../platform/crypto/new-id.ts';
import type { PAYMENT_COLUMNS } from '../platform/db/columns.ts';
import type { Row } from '../platform/db/entities.ts';
import type { AuthorizationRow } from './authorization-resource.ts';
import { isApproved, isUntold, REQUEST_TOLD_WITHIN_MS, type Request } from './pairing-rules.ts';
import {
  type Booking,
  type BookingTerms,
  bookPayment,
  type HandMade,
  NEW_PAYMENT,
  type Payment,
} from './rules.ts';
import type { TransactionRow } from './transaction-resource.ts';
import { columnsOf, toDecline, toTransaction, transactionPosting } from './transaction-rows.ts';

/** What is kept of a payment beside its authorization. */
export type PaymentRow = Row<'payment', (typeof PAYMENT_COLUMNS)[number]>;

/**
 * What a payment is booked on, and a request of it decided. The transaction holds the card's lock, which
 * guards all of it.
 */
export interface PaymentTerms {
  card: CardRow;
  balance: CardBalance;
  feePlan: FeePlan;
  /** The account's prepaid balance, which is not locked: it may change at any time. */
  prepaidCents: number;
  clock: AccountClock;
  authorization: AuthorizationRow | null;
  payment: PaymentRow | null;
  /** By the network's id of an element: what a person says that it means. */
  handMade: ReadonlyMap<string, HandMade>;
  /** By the network's id of an element that is booked: its transaction. */
  transactionIds: ReadonlyMap<string, string>;
  /** What restricts the card. Spending limits are in it only if something is to be decided. */
  controls: AppliedControls;
  /** When it was asked for, before the wait for the card's lock, in real time. */
  askedAt: Date;
  /** What the card's pending top-ups would add: a refund leaves room for it. */
  arrivingCents: bigint;
  /** The purchase that a refund gives money back for; null if that is not known. */
  refunded: RefundedTransaction | null;
}

/** The purchase that a refund gives money back for. */
export interface RefundedTransaction {
  id: string;
  /** A partner may name one that is no purchase. */
  type: TransactionType;
  amountCents: number;
  /** What earlier refunds gave back of it. */
  givenBackCents: number;
  merchant: PaymentMerchant;
}

type PaymentEvent = 'card.authorization.created' | 'card.authorization.updated' | 'card.transaction.created';

/** A booking as it will be written. */
export interface BookedPayment {
  card: CardRow;
  /** The card's after it. */
  balance: CardBalance;
  /** The prepaid balance after it, but for its fees. */
  prepaidCents: number;
  clock: AccountClock;
  authorization: AuthorizationRow | null;
  transactions: TransactionRow[];
  /** Null if nothing has to be remembered: a message by itself. */
  payment: (PaymentRow & { authorization_id: string | null; read_after: string | null }) | null;
  /** What moves in the ledger, in this order. */
  postings: Posting[];
  /** Each with its transaction, if it is of one. */
  events: { type: PaymentEvent; transaction: TransactionRow | null }[];
  /** Whether anything is to be written. */
  isChanged: boolean;
  /** Whether what was cleared before becomes the authorization's. */
  links: boolean;
}

/** Names that a booking is written under, and when. */
interface BookedAs {
  paymentId: string;
  /** The network's id of the payment, which transactions show; null if it is our own. */
  networkPaymentId: string | null;
  /** The id of the authorization, if the booking makes one. */
  authorizationId: string;
  /** When it was decided, in real time, if that was before an interval of spending ended. */
  decidedAt: Date | undefined;
  /** For the account. */
  now: string;
}

/** A new authorization is as old as its id says. */
export function nameBooking(
  { authorization, clock, controls, askedAt }: PaymentTerms,
  networkPaymentId: string | null,
): BookedAs {
  const decidedAt = decisionTime(controls, askedAt, clock);
  const authorizationId = authorization?.id ?? newId('auth', decidedAt);
  const at = authorization === null ? accountTime(clock, readIdTime(authorizationId)) : accountTime(clock);
  const paymentId = networkPaymentId ?? authorizationId;
  return { paymentId, networkPaymentId, authorizationId, decidedAt, now: at.toISOString() };
}

/** Our record of a payment, as it is decided on. */
export function toPayment({
  authorization,
  payment,
}: Pick<PaymentTerms, 'authorization' | 'payment'>): Payment {
  if (payment === null) return NEW_PAYMENT;
  return {
    said: payment.said,
    requests: payment.requests,
    clearedCents: Number(payment.cleared_cents),
    isExpired: payment.is_expired,
    authorization: authorization && {
      status: authorization.status,
      amountCents: Number(authorization.amount_cents),
      heldCents: Number(authorization.held_cents),
      targetCents: Number(authorization.target_cents),
      settledCents: Number(authorization.settled_cents),
      reason: authorization.decline_reason,
      expiresAt: authorization.expires_at && new Date(authorization.expires_at).toISOString(),
    },
  };
}

/** Books a payment: what it becomes, with the rows, postings and events of that. */
export function bookOn(
  terms: PaymentTerms,
  payment: Payment,
  told: Pick<BookingTerms, 'snapshot' | 'readAt' | 'ttlMs'>,
  as: BookedAs,
): BookedPayment {
  const { card, balance, prepaidCents, handMade, transactionIds } = terms;
  const money = { status: card.status, ...balance, prepaidCents };
  const booked = new Set(transactionIds.keys());
  return toRows(terms, bookPayment(payment, money, { ...told, handMade, booked, now: as.now }), as);
}

function toRows(terms: PaymentTerms, booking: Booking, as: BookedAs): BookedPayment {
  const { card, clock, authorization: before } = terms;
  const { payment, releasedCents } = booking;
  const balance = { balanceCents: booking.card.balanceCents, heldCents: booking.card.heldCents };
  const fromHoldCents = booking.movements.reduce((sum, movement) => sum + movement.fromHoldCents, 0);
  const authorization = toAuthorization(terms, booking, { ...as, fromHoldCents });
  const isAuthorized = authorization !== null && authorization.status !== 'declined';
  const of = { ...as, authorizationId: authorization?.id ?? null };
  const declines = booking.declines.map((decline) => toDecline({ ...terms, balance }, decline, of));
  const cleared = { ...of, authorizationId: isAuthorized ? of.authorizationId : null };
  const refundedIds = new Map(terms.transactionIds);
  if (terms.refunded !== null) refundedIds.set(terms.refunded.id, terms.refunded.id);
  const moved = booking.movements.map((movement) => {
    const row = toTransaction(terms, movement, cleared, refundedIds);
    refundedIds.set(movement.id, row.id);
    return row;
  });
  const transactions = [...declines, ...moved];

  const holds = holdPostings(before, authorization, fromHoldCents);
  // A hold is resolved once, so this step is new.
  const step = `release/${before?.id}/${before?.holds}`;
  const release = releasedCents > 0 ? releasePosting(card, releasedCents, step) : null;
  const settled = transactions.map(transactionPosting);
  const postings = [holds.resolve, ...settled, holds.make, release].filter((posting) => posting !== null);
  const events: BookedPayment['events'] = transactions.map((transaction) => ({
    type: 'card.transaction.created',
    transaction,
  }));
  const news = authorization && newsOf(before, authorization);
  if (news !== null) events.unshift({ type: news, transaction: null });
  const row = toPaymentRow(payment, as.paymentId);
  const isSame =
    postings.length === 0 &&
    events.length === 0 &&
    isDeepStrictEqual(row, terms.payment && { ...row, ...fieldsOf(terms.payment) }) &&
    isDeepStrictEqual(authorization?.expires_at ?? null, toPayment(terms).authorization?.expiresAt ?? null);
  const wasAuthorized = before !== null && before.status !== 'declined';
  const isRemembered =
    terms.payment !== null ||
    authorization !== null ||
    payment.clearedCents > 0 ||
    // The simulated network's own word on a request is booked, and never told again.
    (!isFolded(payment.said) && payment.requests.length > 0) ||
    payment.said.unreadable.length > 0;
  return {
    card,
    balance,
    clock,
    authorization,
    transactions,
    payment: isRemembered
      ? { ...row, authorization_id: of.authorizationId, read_after: readAfter(terms, payment) }
      : null,
    prepaidCents: booking.card.prepaidCents,
    isChanged: isRemembered ? !isSame : transactions.length > 0,
    links: isAuthorized && !wasAuthorized && Number(terms.payment?.cleared_cents ?? 0) > 0,
    postings,
    events,
  };
}

const DAY_MS = 86_400_000;
/** By how much an issuer's clock, or PostgreSQL's, may differ from ours. */
const CLOCK_DIFFERENCE_MS = 30_000;

/**
 * When an issuer is asked for the payment again, whether or not it tells anything of it: once it should have
 * told what we approved, at its expiry, and each day as long as it holds something.
 */
function readAfter({ card, clock }: PaymentTerms, { said, requests, authorization }: Payment): string | null {
  if (card.mode === 'test' || isFolded(said) || authorization === null) return null;
  const untold = requests.filter(isUntold).map(({ created }) => Date.parse(created) + REQUEST_TOLD_WITHIN_MS);
  const ends = authorization.expiresAt === null ? [] : [Date.parse(authorization.expiresAt)];
  const isOver = authorization.status !== 'pending' && untold.length === 0;
  if (isOver) return null;
  const nowMs = accountTime(clock).getTime();
  const times = [...untold, ...ends].map((atMs) => atMs + CLOCK_DIFFERENCE_MS).filter((atMs) => atMs > nowMs);
  return new Date(Math.min(nowMs + DAY_MS, ...times)).toISOString();
}

function toPaymentRow(payment: Payment, paymentId: string): PaymentRow {
  const { said, requests, clearedCents, isExpired } = payment;
  return {
    payment_id: paymentId,
    said,
    // The simulated network tells each request once, with our decision.
    requests: isFolded(said) ? requests.slice(0, MAX_REQUESTS) : requests,
    cleared_cents: String(clearedCents),
    is_expired: isExpired,
  };
}

/** A row as it is read, in the form that it is written in. */
const fieldsOf = ({ said, requests, cleared_cents, is_expired }: PaymentRow) => ({
  said,
  requests,
  cleared_cents: String(cleared_cents),
  is_expired,
});

function toAuthorization(
  { card, authorization: before, clock }: PaymentTerms,
  { payment }: Booking,
  { authorizationId, networkPaymentId, fromHoldCents }: BookedAs & { fromHoldCents: number },
): AuthorizationRow | null {
  const { authorization: after, requests } = payment;
  if (after === null) return null;
  const [first] = requests;
  const merchant = columnsOf(first?.merchant ?? NOWHERE);
  const created = accountTime(clock, readIdTime(authorizationId)).toISOString();
  const isHeldAnew = Number(before?.held_cents ?? 0) !== after.heldCents || fromHoldCents > 0;
  return {
    ...(before ?? {
      id: authorizationId,
      partner_id: card.partner_id,
      mode: card.mode,
      card_id: card.id,
      network_authorization_id: networkPaymentId,
      ...merchant,
      created_at: created,
    }),
    status: after.status,
    amount_cents: String(after.amountCents),
    held_cents: String(after.heldCents),
    settled_cents: String(after.settledCents),
    target_cents: String(after.targetCents),
    decline_reason: after.reason,
    requests: requests.slice(0, MAX_REQUESTS).map(toRequest),
    holds: (before?.holds ?? 0) + (isHeldAnew && after.heldCents > 0 ? 1 : 0),
    expires_at: after.expiresAt,
  };
}

function toRequest(request: Request, index: number): AuthorizationRequest {
  const { amountCents, created, decision, told } = request;
  const approved = isApproved(request) || (told === null && decision?.approved === true);
  return {
    type: index === 0 ? 'authorization' : 'increment',
    amount: amountCents,
    approved,
    decline_reason: approved ? null : (decision?.reason ?? told?.reason ?? null),
    created,
  };
}

/**
 * A pending authorization has exactly one hold in the ledger, of all that it holds. What changes that
 * resolves the hold, of which clearings take their part, and makes the next one once they are paid.
 */
function holdPostings(
  before: AuthorizationRow | null,
  after: AuthorizationRow | null,
  clearedCents: number,
): { resolve: Posting | null; make: Posting | null } {
  if (after === null || (clearedCents === 0 && Number(before?.held_cents ?? 0) === Number(after.held_cents)))
    return { resolve: null, make: null };
  const flow = { code: 'authorization', debit: { cardId: after.card_id }, credit: 'network' } as const;
  const posting = (transfer: Transfer): Posting => ({
    operationId: `auth/${after.id}`,
    partnerId: after.partner_id,
    mode: after.mode,
    transfers: [transfer],
  });
  const wasCents = Number(before?.held_cents ?? 0);
  const resolves = `hold/${before?.holds}`;
  const [phase, amountCents] =
    clearedCents > 0 ? (['post', clearedCents] as const) : (['void', wasCents] as const);
  const heldCents = Number(after.held_cents);
  return {
    resolve:
      wasCents > 0 ? posting({ ...flow, step: `${resolves}/${phase}`, phase, amountCents, resolves }) : null,
    make:
      heldCents > 0
        ? posting({ ...flow, step: `hold/${after.holds}`, phase: 'pending', amountCents: heldCents })
        : null,
  };
}

/** A declined increment is no news of its authorization, and neither is when that expires. */
function newsOf(before: AuthorizationRow | null, after: AuthorizationRow): PaymentEvent | null {
  if (before === null) return 'card.authorization.created';
  const isSame =
    before.status === after.status &&
    (['amount_cents', 'held_cents', 'settled_cents'] as const).every(
      (column) => Number(before[column]) === Number(after[column]),
    ) &&
    before.requests.every(({ approved }, index) => after.requests[index]?.approved === approved);
  return isSame ? null : 'card.authorization.updated';
}
