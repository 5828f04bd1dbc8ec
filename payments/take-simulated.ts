import { decisionTime } from '../cards/applied-controls.ts';
import type { DeclineReason } from '../domain/authorization.ts';
import type { PaymentSnapshot } from '../domain/payment.ts';
import { type AppliedControls, refusalByControls } from '../domain/spending-controls.ts';
import {
  foldMessage,
  NOTHING_FOLDED,
  type SimulatedMessage,
  snapshotFolded,
} from '../issuers/simulated/fold.ts';
import { newId } from '../platform/crypto/new-id.ts';
import type { AuthorizationRow } from './authorization-resource.ts';
import {
  type BookedPayment,
  bookingTime,
  type PaymentTerms,
  toMoney,
  toPayment,
  toRows,
} from './booking-rows.ts';
import { decideRequest } from './decision-rules.ts';
import { bookPayment } from './rules.ts';

/** What a message of the simulated network is booked on. */
export interface SimulatedTerms extends PaymentTerms {
  /** What restricts the card. Spending limits are in it only if a request is to be decided. */
  controls: AppliedControls;
  /** When a request was asked, before the wait for the card's lock, in real time. */
  askedAt?: Date;
}

interface Simulated {
  message: Omit<SimulatedMessage, 'reason' | 'at'>;
  /** The network's id of the payment; null for our own, which is that of its authorization. */
  networkPaymentId: string | null;
  ttlMs: number;
}

/**
 * Takes a message of the simulated network, which is folded into its payment and booked: a request is decided
 * first. Test mode is this network inside our transaction.
 * @throws ApiError `validation_failed` if a fee would exceed the largest safe integer
 */
export function takeSimulated(terms: SimulatedTerms, { message, networkPaymentId, ttlMs }: Simulated) {
  const { card, clock, authorization, payment: row, controls, askedAt } = terms;
  const decidedAt = askedAt && decisionTime(controls, askedAt, clock);
  const authorizationId = authorization?.id ?? newId('auth', decidedAt);
  const now = bookingTime(terms, authorizationId);
  const paymentId = networkPaymentId ?? authorizationId;
  const before = row?.folded ?? NOTHING_FOLDED;
  const asked = { ...message, reason: null, at: now };
  const isRequest = message.type === 'authorization' || message.type === 'increment';
  const { reason, payment } = isRequest
    ? decide(terms, asked, now)
    : { reason: null, payment: toPayment(terms) };

  const told: SimulatedMessage = { ...asked, reason };
  const folded = foldMessage(before, told);
  const snapshot: PaymentSnapshot = snapshotFolded(
    { paymentId, networkCardId: card.network_card_id ?? card.id },
    folded,
    told,
  );
  const booking = bookPayment(payment, toMoney(terms), {
    snapshot,
    readAt: null,
    handMade: new Map(),
    booked: new Set(),
    now,
    ttlMs,
  });
  const as = { paymentId, networkPaymentId, authorizationId, folded, refundedIds: new Map() };
  return toRows(terms, booking, as);
}

/** A booking that has an authorization, as that of a request has. */
export function requireAuthorization(booked: BookedPayment): AuthorizationRow {
  if (booked.authorization === null) throw new Error('the booking has no authorization');
  return booked.authorization;
}

function decide(terms: SimulatedTerms, asked: SimulatedMessage, now: string) {
  const { card, balance, controls, payment: row, authorization } = terms;
  const amountCents = asked.amountCents ?? 0;
  const before = row?.folded ?? NOTHING_FOLDED;
  const heldCents = (folded: typeof before) => folded.authorization?.heldCents ?? 0;
  // What was cleared of it before it was asked for is paid, and counts already.
  const holdsCents = heldCents(foldMessage(before, asked)) - heldCents(before);
  const { categoryCode, country } = terms.payment?.requests[0]?.merchant ?? asked.merchant;
  const refusedByControls: DeclineReason | null = refusalByControls(controls, {
    amountCents: holdsCents,
    wholeCents: Number(authorization?.amount_cents ?? 0) + amountCents,
    categoryCode,
    country,
  });
  return decideRequest(
    toPayment(terms),
    { key: asked.id, id: asked.id, amountCents, merchant: asked.merchant },
    { card: { status: card.status, ...balance }, holdsCents, refusedByControls, now },
  );
}
