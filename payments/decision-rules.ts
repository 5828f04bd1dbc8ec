import { ApiError } from '../domain/api-error.ts';
import { type DeclineReason, decideDecline, MAX_REQUESTS } from '../domain/authorization.ts';
import type { Asked } from '../domain/payment.ts';
import type { CardMoney } from './money-rules.ts';
import { isToldLongBefore, type Request, type ToldRequest } from './pairing-rules.ts';
import type { Payment } from './rules.ts';

/** The answer, and the payment with it, still to be booked. */
export interface Decided {
  reason: DeclineReason | null;
  payment: Payment;
}

const CONFLICT = 'The network has asked with this id before, for another amount. Nothing was changed.';

/**
 * Decides a request (docs/partners/authorizations.md). One that the network has told already, and which no
 * decision has taken, is the one asked: its result is the answer.
 * @throws ApiError `idempotency_conflict` if the key asked for another amount before
 * @param terms.holdsCents what it would hold more
 * @param terms.refusedByControls why spending controls refuse it; null if they don't
 */
export function decideRequest(
  payment: Payment,
  asked: Asked,
  terms: {
    card: Pick<CardMoney, 'status' | 'balanceCents' | 'heldCents'>;
    holdsCents: number;
    refusedByControls: DeclineReason | null;
    now: string;
  },
): Decided {
  const { requests, authorization } = payment;
  const { key, id, amountCents, merchant } = asked;
  const decided = requests.find(({ decision }) => decision?.key === key)?.decision;
  if (decided?.amountCents === amountCents) return { reason: decided.reason, payment };
  if (decided) throw new ApiError('idempotency_conflict', { message: CONFLICT });

  const isAsked = (told: ToldRequest, toldCents: number) =>
    told.id === id ||
    (id === null && told.by === 'us' && toldCents === amountCents && !isToldLongBefore(told, terms.now));
  const told = requests.find(
    (request) =>
      request.decision === null && request.told !== null && isAsked(request.told, request.amountCents),
  );
  if (told?.told) {
    const { approved, reason } = told.told;
    const decision = {
      key,
      id: told.told.id,
      amountCents: told.amountCents,
      approved,
      reason,
      isDropped: false,
      isCharged: false,
    };
    const taken = requests.map((request) => (request === told ? { ...told, decision } : request));
    return { reason, payment: { ...payment, requests: taken } };
  }

  const isOver =
    authorization !== null && (authorization.status !== 'pending' || requests.length >= MAX_REQUESTS);
  const { status, balanceCents, heldCents } = terms.card;
  const reason = isOver
    ? 'authorization_not_pending'
    : decideDecline(
        { status, availableCents: balanceCents - heldCents },
        terms.holdsCents,
        terms.refusedByControls,
      );
  const decision = {
    key,
    id,
    amountCents,
    approved: reason === null,
    reason,
    isDropped: false,
    isCharged: false,
  };
  const request: Request = { amountCents, merchant, created: terms.now, decision, told: null };
  return { reason, payment: { ...payment, requests: [...requests, request] } };
}
