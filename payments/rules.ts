import type { AuthorizationStatus, DeclineReason } from '../domain/authorization.ts';
import {
  isOlder,
  NOWHERE,
  type PaymentMovement,
  type PaymentSnapshot,
  type PaymentState,
  type UnnamedSnapshot,
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
  said: PaymentState;
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
  snapshot: UnnamedSnapshot | null;
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
  const isOutdated = terms.snapshot !== null && isOlder(terms.snapshot.version, before.said.version);
  const snapshot = isOutdated ? null : terms.snapshot;
  const readAt = isOutdated ? null : terms.readAt;
  const said = snapshot === null ? before.said : facts(snapshot);
  const paired = snapshot === null ? before.requests : pairRequests(before.requests, snapshot, terms.now);
  // Those of ours that the network did not take in time hold nothing any more.
  const { requests, declines } = chargeDeclines(paired.map((request) => dropLate(request, readAt)));
  const { movements, clearedCents, card, heldCents } = payMovements(
    toMovements(snapshot, said.unreadable, terms),
    { ...money, ofPaymentCents: before.authorization?.heldCents ?? 0, clearedCents: before.clearedCents },
  );

  const untoldCents = requests.filter(isUntold).reduce((sum, { amountCents }) => sum + amountCents, 0);
  const networkCents = said.heldCents === null ? heldCents : said.heldCents + untoldCents;
  const isAuthorized = wasAuthorized(before) || requests.some(wasApproved);
  const expiresAt = expiryOf(before, { said, requests }, terms);
  const { targetCents, isExpired } = targetOf(
    before,
    { said, requests, expiresAt, heldCents, networkCents },
    terms,
  );
  const held = holdOnCard(card, heldCents, isAuthorized ? targetCents : 0);
  const authorization = isAuthorized
    ? {
        status: statusOf({ targetCents, clearedCents, isExpired, endedBy: said.endedBy }),
        amountCents: said.authorizedCents + untoldCents,
        heldCents: held.heldCents,
        targetCents,
        settledCents: clearedCents,
        reason: null,
        expiresAt,
      }
    : declinedOf(before, requests);

  const { card: after, releasedCents } = releaseIfBlocked(held.card, heldCents > held.heldCents);
  const last = movements.at(-1);
  if (last !== undefined) last.cardBalanceAfterCents = after.balanceCents;
  const payment = { said, requests, authorization, clearedCents, isExpired };
  return { payment, declines, movements, card: after, releasedCents };
}

const wasAuthorized = ({ authorization }: Payment): boolean =>
  authorization !== null && authorization.status !== 'declined';

/** Whether a request is approved that was not before, by us or by the network. */
function isNewlyApproved(before: Payment, requests: readonly Request[]): boolean {
  const known = new Set(before.requests.filter(isApproved).flatMap(namesOf));
  const isNew = (request: Request) =>
    isApproved(request) && !namesOf(request).some((name) => known.has(name));
  return !wasAuthorized(before) || requests.some(isNew);
}

/** When it expires: as the network says, if that is news or lies ahead; else by our own clock. */
function expiryOf(
  before: Payment,
  { said, requests }: Pick<Payment, 'said' | 'requests'>,
  { now, ttlMs }: BookingTerms,
): string | null {
  const { authorization } = before;
  const isNews = said.expiresAt !== null && said.expiresAt > (before.said.expiresAt ?? '');
  if (said.expiresAt !== null && (isNews || said.expiresAt > now)) return said.expiresAt;
  const isRenewed = authorization?.status !== 'pending' && isNewlyApproved(before, requests);
  return isRenewed ? new Date(Date.parse(now) + ttlMs).toISOString() : (authorization?.expiresAt ?? null);
}

/** What it should hold, and whether our clock has ended it, which counts until the network has more of it. */
function targetOf(
  before: Payment,
  {
    said,
    requests,
    expiresAt,
    heldCents,
    networkCents,
  }: Pick<Payment, 'said' | 'requests'> & {
    expiresAt: string | null;
    heldCents: number;
    networkCents: number;
  },
  { handMade, now }: BookingTerms,
): { targetCents: number; isExpired: boolean } {
  const ends = before.authorization?.expiresAt ?? null;
  const isLater = said.expiresAt !== null && ends !== null && said.expiresAt > ends;
  const isStillExpired = before.isExpired && !isLater && !isNewlyApproved(before, requests);
  const isUndecided = said.unreadable.some(({ id }) => !handMade.has(id));
  if (isUndecided) {
    // Until a person has said what an element means, the hold is not lowered, and does not expire.
    const targetCents = Math.max(heldCents, isStillExpired ? 0 : networkCents);
    return { targetCents, isExpired: isStillExpired };
  }
  const isDue = networkCents > 0 && expiresAt !== null && expiresAt <= now;
  const isExpired = isStillExpired || isDue;
  return { targetCents: isExpired ? 0 : networkCents, isExpired };
}

/** What partners see of a payment of which nothing was approved; null if we declined nothing of it. */
function declinedOf({ authorization }: Payment, requests: readonly Request[]): PaymentAuthorization | null {
  const [first] = requests.filter(({ decision }) => decision !== null).sort(byAge);
  if (authorization !== null || first === undefined) return authorization;
  const reason = first.decision?.reason ?? null;
  const { amountCents } = first;
  const nothing = { heldCents: 0, targetCents: 0, settledCents: 0, expiresAt: null };
  return { status: 'declined', amountCents, reason, ...nothing };
}

const facts = ({
  paymentId,
  networkCardId,
  requests,
  movements,
  ...said
}: UnnamedSnapshot & Partial<PaymentSnapshot>): PaymentState => said;

const namesOf = ({ decision, told }: Request): string[] =>
  [told?.id, decision === null ? undefined : `decided ${decision.key}`].filter((name) => name !== undefined);

/** What is not booked yet, in the network's order, and what a person says about the rest. */
function toMovements(
  snapshot: UnnamedSnapshot | null,
  unreadable: readonly UnreadableElement[],
  { booked, handMade }: BookingTerms,
): PaymentMovement[] {
  const read = (snapshot?.movements ?? []).filter(
    ({ id }) => !booked.has(id) && handMade.get(id)?.means !== 'nothing',
  );
  const byHand = unreadable.flatMap(({ id }): PaymentMovement[] => {
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
        ofAuthorization: isPurchase,
        refunds: null,
      },
    ];
  });
  return [...read, ...byHand];
}

function statusOf(of: {
  targetCents: number;
  clearedCents: number;
  isExpired: boolean;
  endedBy: PaymentSnapshot['endedBy'];
}): AuthorizationStatus {
  if (of.targetCents > 0) return 'pending';
  if (of.clearedCents > 0) return 'closed';
  return of.isExpired || of.endedBy === 'expiry' ? 'expired' : 'reversed';
}
