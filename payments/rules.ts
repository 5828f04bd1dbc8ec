import type { AuthorizationStatus, DeclineReason } from '../domain/authorization.ts';
import {
  isOlder,
  NOWHERE,
  type PaymentMovement,
  type PaymentSnapshot,
  type UnreadableElement,
} from '../domain/payment.ts';
import {
  type CardMoney,
  holdOnCard,
  type PaidMovement,
  payMovements,
  releaseIfBlocked,
} from './money-rules.ts';
import {
  byAge,
  chargeDeclines,
  type Decline,
  dropLate,
  isApproved,
  isUntold,
  pairRequests,
  type Request,
  wasApproved,
} from './pairing-rules.ts';

// What a payment becomes once we know what the network has (docs/decisions/payments.md). Everything is
// computed from the whole of it, so it comes to the same whatever was told before, how often, and in which
// order.

/** Our record of a payment. */
export interface Payment {
  /** What the network said last. */
  said: Pick<
    PaymentSnapshot,
    'version' | 'authorizedCents' | 'heldCents' | 'endedBy' | 'expiresAt' | 'unreadable'
  >;
  /** Of the requests before the snapshot's, only what is not told yet has to be here. */
  requests: readonly Request[];
  /** Null until a request is approved, or declined by us: then it is no authorization. */
  authorization: PaymentAuthorization | null;
  /** What was cleared of its authorization, or before that was known. */
  clearedCents: number;
  /** Our clock ended it, whatever the network holds. */
  isExpired: boolean;
}

/** What partners see of it, besides its requests. */
export interface PaymentAuthorization {
  status: AuthorizationStatus;
  amountCents: number;
  heldCents: number;
  /** What the network holds, which is more than we do if the card lacked it. */
  targetCents: number;
  settledCents: number;
  reason: DeclineReason | null;
  expiresAt: string | null;
}

export const NEW_PAYMENT: Payment = {
  said: {
    version: [],
    authorizedCents: 0,
    heldCents: 0,
    endedBy: null,
    expiresAt: null,
    unreadable: [],
  },
  requests: [],
  authorization: null,
  clearedCents: 0,
  isExpired: false,
};

/** What an element means that only a person could read. */
export type HandMade = { means: 'purchase' | 'refund'; amountCents: number } | { means: 'nothing' };

export interface BookingTerms {
  /** Null: the network has nothing new, or no such payment. */
  snapshot: PaymentSnapshot | null;
  /** When the read that it comes from began; null if nothing was read. */
  readAt: string | null;
  /** By the id of the element. */
  handMade: ReadonlyMap<string, HandMade>;
  /** The ids of the elements that are booked, of those that the snapshot names. */
  booked: ReadonlySet<string>;
  now: string;
  /** How long an authorization holds its amount if the network does not say. */
  ttlMs: number;
}

/** The difference to write. */
export interface Booking {
  payment: Payment;
  declines: Decline[];
  movements: PaidMovement[];
  card: CardMoney;
  /** What became free on a blocked card. */
  releasedCents: number;
}

/** What the payment is now, and what that moves. */
export function bookPayment(before: Payment, money: CardMoney, terms: BookingTerms): Booking {
  const { snapshot: read, readAt, now, ttlMs } = terms;
  const snapshot = read !== null && !isOlder(read.version, before.said.version) ? read : null;
  const said = snapshot === null ? before.said : facts(snapshot);
  const paired = snapshot === null ? before.requests : pairRequests(before.requests, snapshot, now);
  const isRead = read === null || snapshot !== null;
  const inTime = paired.map((request) => (isRead ? dropLate(request, readAt) : request));
  const { requests, declines } = chargeDeclines(inTime);

  const isNew = before.authorization === null;
  const wasAuthorized = !isNew && before.authorization?.status !== 'declined';
  const isAuthorized = wasAuthorized || requests.some(wasApproved);
  const { movements, clearedCents, card, heldCents } = payMovements(
    toMovements(snapshot, said.unreadable, terms),
    { ...money, ofPaymentCents: before.authorization?.heldCents ?? 0, clearedCents: before.clearedCents },
  );

  const untoldCents = requests.filter(isUntold).reduce((sum, { amountCents }) => sum + amountCents, 0);
  const isUndecided = said.unreadable.some(({ id }) => !terms.handMade.has(id));
  const approvedBefore = new Set(before.requests.filter(isApproved).flatMap(namesOf));
  const isNewlyApproved =
    !wasAuthorized ||
    requests.some((request) => isApproved(request) && !namesOf(request).some((id) => approvedBefore.has(id)));
  const ends = before.authorization?.expiresAt ?? null;
  const isOpen = before.authorization?.status === 'pending';
  // What the network says of it counts when it is news, or lies ahead.
  const isNamed =
    said.expiresAt !== null && (said.expiresAt > now || said.expiresAt > (before.said.expiresAt ?? ''));
  const isRenewed = isNewlyApproved && !isOpen;
  const ownExpiry = isRenewed ? new Date(Date.parse(now) + ttlMs).toISOString() : ends;
  const expiresAt = isNamed ? said.expiresAt : ownExpiry;
  const isLater = said.expiresAt !== null && ends !== null && said.expiresAt > ends;

  const networkCents = said.heldCents === null ? heldCents : said.heldCents + untoldCents;
  const isDue = networkCents > 0 && expiresAt !== null && expiresAt <= now;
  const isExpired = (before.isExpired && !isNewlyApproved && !isLater) || (isDue && !isUndecided);
  const wantedCents = isExpired ? 0 : networkCents;
  const targetCents = isUndecided ? Math.max(heldCents, wantedCents) : wantedCents;
  const held = holdOnCard(card, heldCents, isAuthorized ? targetCents : 0);

  const [first] = requests.filter(({ decision }) => decision !== null).sort(byAge);
  const isKnown = !isNew || isAuthorized || first !== undefined;
  const authorization: PaymentAuthorization | null = isKnown
    ? {
        status: statusOf({ isAuthorized, targetCents, clearedCents, isExpired, endedBy: said.endedBy }),
        amountCents: isAuthorized
          ? said.authorizedCents + untoldCents
          : (before.authorization?.amountCents ?? first?.amountCents ?? 0),
        heldCents: held.heldCents,
        targetCents: isAuthorized ? targetCents : 0,
        settledCents: isAuthorized ? clearedCents : 0,
        reason: isAuthorized ? null : (before.authorization?.reason ?? first?.decision?.reason ?? null),
        expiresAt: isAuthorized ? expiresAt : null,
      }
    : null;
  const { card: after, releasedCents } = releaseIfBlocked(held.card, heldCents - held.heldCents > 0);
  const last = movements.at(-1);
  if (last !== undefined) last.cardBalanceAfterCents = after.balanceCents;
  return {
    payment: { said, requests, authorization, clearedCents, isExpired },
    declines,
    movements,
    card: after,
    releasedCents,
  };
}

const facts = ({
  version,
  authorizedCents,
  heldCents,
  endedBy,
  expiresAt,
  unreadable,
}: PaymentSnapshot): Payment['said'] => ({
  version,
  authorizedCents,
  heldCents,
  endedBy,
  expiresAt,
  unreadable,
});

const namesOf = ({ decision, told }: Request): string[] =>
  [told?.id, decision === null ? undefined : `decided ${decision.key}`].filter((name) => name !== undefined);

/** What is not booked yet, in the network's order, and what a person says about the rest. */
function toMovements(
  snapshot: PaymentSnapshot | null,
  unreadable: readonly UnreadableElement[],
  { booked, handMade }: BookingTerms,
): PaymentMovement[] {
  const read = (snapshot?.movements ?? []).filter(
    ({ id }) => !booked.has(id) && handMade.get(id)?.means !== 'nothing',
  );
  const byHand = unreadable.flatMap(({ id, at }): PaymentMovement[] => {
    const made = handMade.get(id);
    if (made === undefined || made.means === 'nothing' || booked.has(id)) return [];
    const { amountCents, means } = made;
    const isPurchase = means === 'purchase';
    const merchant = snapshot?.requests[0]?.merchant ?? NOWHERE;
    return [
      {
        id,
        kind: isPurchase ? 'clearing' : 'refund',
        amountCents,
        merchant,
        at,
        ofAuthorization: isPurchase,
        refunds: null,
      },
    ];
  });
  return [...read, ...byHand];
}

function statusOf(of: {
  isAuthorized: boolean;
  targetCents: number;
  clearedCents: number;
  isExpired: boolean;
  endedBy: PaymentSnapshot['endedBy'];
}): AuthorizationStatus {
  if (!of.isAuthorized) return 'declined';
  if (of.targetCents > 0) return 'pending';
  if (of.clearedCents > 0) return 'closed';
  return of.isExpired || of.endedBy === 'expiry' ? 'expired' : 'reversed';
}
