import type { DeclineReason } from '../domain/authorization.ts';
import type { PaymentMerchant, PaymentRequest, PaymentSnapshot } from '../domain/payment.ts';

/** A merchant's request: what we decided, what the network told of it, or both. */
export interface Request {
  amountCents: number;
  merchant: PaymentMerchant;
  /** When it was decided here, or first told. */
  created: string;
  decision: OurDecision | null;
  told: ToldRequest | null;
}

interface OurDecision {
  /** What asked for it, which has one answer however often it asks. */
  key: string;
  /** The network's id of the request; null if it named none. */
  id: string | null;
  /** What was asked, which the network may tell converted. */
  amountCents: number;
  approved: boolean;
  reason: DeclineReason | null;
  /** A request that the network did not take in time: it holds nothing any more. */
  isDropped: boolean;
  /** Whether its decline is booked, with its fee. */
  isCharged: boolean;
}

export interface ToldRequest {
  id: string;
  /** When it was first told. */
  since: string;
  approved: boolean;
  reason: DeclineReason | null;
  by: PaymentRequest['by'];
  isCharged: boolean;
}

/**
 * How long the network may take to tell a request that we approved, and we to be asked about one that it
 * told.
 */
export const REQUEST_TOLD_WITHIN_MS = 600_000;

/** The network's word counts, both ways. A decision of ours that it never took counts no more. */
export const isApproved = ({ told, decision }: Request): boolean =>
  told === null ? decision?.approved === true && !decision.isDropped : told.approved;

/** Approved by us or by the network, whatever became of it. */
export const wasApproved = ({ told, decision }: Request): boolean =>
  told?.approved === true || decision?.approved === true;

/** So long before this decision that it can't be about the same request, which the network asks at once. */
export const isToldLongBefore = ({ since }: ToldRequest, decidedAt: string): boolean =>
  Date.parse(since) <= Date.parse(decidedAt) - REQUEST_TOLD_WITHIN_MS;

/** Approved here and not told yet, so that the network may not hold it yet. */
export const isUntold = (request: Request): boolean => request.told === null && isApproved(request);

/**
 * Pairs the network's requests with our decisions, from the beginning each time, so that the order in which
 * either came does not matter: by the network's id; else by amount, in order; then an approved one takes the
 * oldest decision that is left, since its amount may have been converted. What was told long before a decision
 * can't be its request, unless the network's id says so. A decision that the network did not take in time comes
 * last. A request that the snapshot does not have stays as it was.
 * @returns those told before, those of the snapshot in its order, then decisions that it lacks
 */
export function pairRequests(
  known: readonly Request[],
  snapshot: Pick<PaymentSnapshot, 'requests'>,
  now: string,
): Request[] {
  const ids = new Set(snapshot.requests.map(({ id }) => id));
  const isOpen = ({ told }: Request) => told === null || ids.has(told.id);
  const before = known.filter((request) => !isOpen(request));
  const asked = known.filter((request) => isOpen(request) && request.decision !== null);
  const isDropped = ({ decision }: Request) => Number(decision?.isDropped);
  const left = new Set(asked.sort((a, b) => isDropped(a) - isDropped(b) || byAge(a, b)));
  const taken = new Map<string, Request>();

  const pair = (fits: (asked: Request, told: PaymentRequest) => boolean) => {
    for (const told of snapshot.requests) {
      if (taken.has(told.id)) continue;
      const found = [...left].find((asked) => fits(asked, told));
      if (found === undefined) continue;
      taken.set(told.id, found);
      left.delete(found);
    }
  };
  pair(({ decision }, { id }) => decision?.id === id);
  const toldBefore = new Map(known.flatMap(({ told }) => (told === null ? [] : [[told.id, told]])));
  const canBe = ({ decision, created, told }: Request, { id, by }: PaymentRequest) => {
    const earlier = told?.id === id ? undefined : toldBefore.get(id);
    const isLate = earlier !== undefined && isToldLongBefore(earlier, created);
    return decision?.id === null && by === 'us' && !isLate;
  };
  pair((asked, told) => canBe(asked, told) && asked.decision?.amountCents === told.amountCents);
  pair((asked, told) => canBe(asked, told) && told.approved);

  const told = snapshot.requests.map(({ id, amountCents, approved, reason, by, merchant }): Request => {
    const decided = taken.get(id);
    const earlier = toldBefore.get(id);
    const since = earlier?.since ?? now;
    return {
      amountCents,
      merchant: decided?.merchant ?? merchant,
      created: decided?.created ?? since,
      decision: decided?.decision ?? null,
      told: { id, since, approved, reason, by, isCharged: earlier?.isCharged ?? false },
    };
  });
  const untold = [...left].map((request) => {
    const amountCents = request.decision?.amountCents ?? request.amountCents;
    return { ...request, amountCents, told: null };
  });
  return [...before, ...told, ...untold];
}

export interface Decline {
  request: Request;
  requestId: string;
}

/** The oldest first; those of one moment in an order that is always the same. */
export function byAge(one: Request, other: Request): number {
  const [a, b] = [one, other].map(({ created, decision }) => `${created} ${decision?.key}`) as [
    string,
    string,
  ];
  return a < b ? -1 : Number(a > b);
}

/**
 * A read that began when the network should have had our approval, and lacks it, means that it never took it.
 */
export function dropLate(request: Request, readAt: string | null): Request {
  const { decision, created } = request;
  if (!isUntold(request) || decision === null || readAt === null) return request;
  const isLate = Date.parse(readAt) >= Date.parse(created) + REQUEST_TOLD_WITHIN_MS;
  return isLate ? { ...request, decision: { ...decision, isDropped: true } } : request;
}

/** Each declined request is a decline with its fee, once: whoever declined it first. */
export function chargeDeclines(paired: readonly Request[]): { requests: Request[]; declines: Decline[] } {
  const declines: Decline[] = [];
  const requests = paired.map((request): Request => {
    const { decision, told } = request;
    const isDeclined = !isApproved(request) && (told !== null || decision?.approved === false);
    if (!isDeclined || decision?.isCharged || told?.isCharged) return request;
    declines.push({ request, requestId: decision?.id ?? told?.id ?? decision?.key ?? '' });
    return {
      ...request,
      decision: decision && { ...decision, isCharged: decision.approved === false },
      told: told && { ...told, isCharged: decision?.approved !== false },
    };
  });
  return { requests, declines };
}
