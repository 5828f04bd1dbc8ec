import {
  type AuthorizationState,
  approvedState,
  clearedState,
  type DeclineReason,
  expiredState,
  incrementedState,
  reversedState,
} from '../../domain/authorization.ts';
import {
  type FoldedPayment,
  NOWHERE,
  type PaymentEnd,
  type PaymentMerchant,
  type PaymentSnapshot,
} from '../../domain/payment.ts';

/** What the simulated network says, once we have decided it if it is a request. */
export interface SimulatedMessage {
  /** The network's id. */
  id: string;
  type:
    | 'authorization'
    | 'increment'
    | 'clearing'
    | 'reversal'
    | 'expiry'
    | 'purchase'
    | 'decline'
    | 'refund'
    | 'unreadable';
  /** Null for a reversal of all that is left, for an expiry, and for what can't be put into cents. */
  amountCents: number | null;
  /** Whether a clearing is the last one. */
  isFinal: boolean;
  /** Why a request or a purchase was declined; null if it was not. */
  reason: DeclineReason | null;
  merchant: PaymentMerchant;
  /** The movement that a refund gives money back for; null if it names none. */
  refunds: string | null;
  /** Of what can't be put into cents, as the network wrote it. */
  written?: { what: string; currency: string | null; amount: number | null };
  at: string;
}

export const NOTHING_FOLDED: FoldedPayment = {
  messages: 0,
  authorization: null,
  cleared: { cents: 0, isFinal: false },
  unreadable: [],
  lastUnreadableId: null,
};

/** Folds in one message more. The caller sees to it that each is folded in once. */
export function foldMessage(before: FoldedPayment, message: SimulatedMessage): FoldedPayment {
  const folded = { ...before, messages: before.messages + 1 };
  const { authorization: state, cleared } = before;
  const amountCents = message.amountCents ?? 0;
  const isPending = state?.status === 'pending';
  switch (message.type) {
    case 'authorization':
    case 'increment': {
      if (message.reason !== null || amountCents === 0) return folded;
      const authorization =
        state === null ? approvedState(amountCents, cleared) : incrementedState(state, amountCents);
      return { ...folded, authorization };
    }
    case 'clearing': {
      const { isFinal } = message;
      if (state !== null) {
        return { ...folded, authorization: clearedState(state, { amountCents, isFinal }) };
      }
      const cents = cleared.cents + amountCents;
      return { ...folded, cleared: { cents, isFinal: cleared.isFinal || isFinal } };
    }
    case 'reversal': {
      if (state === null || !isPending) return folded;
      const backCents = Math.min(message.amountCents ?? state.heldCents, state.heldCents);
      return { ...folded, authorization: reversedState(state, backCents) };
    }
    case 'expiry':
      return state !== null && isPending ? { ...folded, authorization: expiredState(state) } : folded;
    case 'unreadable': {
      const { id, at, written = { what: 'unknown', currency: null, amount: null } } = message;
      const isLastClearing = written.what === 'clearing' && message.isFinal;
      return {
        ...folded,
        unreadable: [...before.unreadable, { id, at, ...written }],
        authorization:
          state !== null && isLastClearing ? clearedState(state, { amountCents: 0, isFinal: true }) : state,
        lastUnreadableId: state === null && isLastClearing ? id : before.lastUnreadableId,
      };
    }
    default:
      return folded;
  }
}

/**
 * Folds in how much a clearing was that could not be read, as a person says. That it was the last is folded in
 * already, unless it came before a request was approved.
 */
export function foldHandMade(before: FoldedPayment, id: string, amountCents: number): FoldedPayment {
  const isLast = before.lastUnreadableId === id;
  const folded = foldMessage(before, {
    id,
    type: 'clearing',
    amountCents,
    isFinal: isLast,
    reason: null,
    merchant: NOWHERE,
    refunds: null,
    at: '',
  });
  return isLast ? { ...folded, lastUnreadableId: null } : folded;
}

const ENDS: Partial<Record<AuthorizationState['status'], PaymentEnd>> = {
  closed: 'clearing',
  reversed: 'reversal',
  expired: 'expiry',
};

/**
 * The payment after a message. Of its requests and movements, only the message's own is in it: those before
 * it are booked.
 * @param folded with the message
 */
export function snapshotFolded(
  names: Pick<PaymentSnapshot, 'paymentId' | 'networkCardId'>,
  folded: FoldedPayment,
  message: SimulatedMessage,
): PaymentSnapshot {
  const { id, type, reason, merchant, refunds } = message;
  const amountCents = message.amountCents ?? 0;
  const isAsked = type === 'authorization' || type === 'increment';
  const isDeclined = type === 'decline' || (type === 'purchase' && reason !== null);
  const moves = type === 'clearing' || type === 'refund' || (type === 'purchase' && reason === null);
  return {
    ...names,
    ...foldedState(folded),
    requests:
      (isAsked || isDeclined) && amountCents > 0
        ? [
            {
              id,
              amountCents,
              approved: isAsked && reason === null,
              reason: isDeclined ? (reason ?? 'declined_by_network') : reason,
              by: isAsked ? 'us' : 'network',
              merchant,
            },
          ]
        : [],
    movements: moves
      ? [
          {
            id,
            kind: type === 'refund' ? 'refund' : 'clearing',
            amountCents,
            merchant,
            ofAuthorization: type === 'clearing',
            refunds,
          },
        ]
      : [],
  };
}

/** What a snapshot says of the payment besides its requests and movements. */
export const foldedState = ({ messages, authorization, unreadable }: FoldedPayment) => ({
  version: [messages],
  authorizedCents: authorization?.amountCents ?? 0,
  heldCents: authorization?.heldCents ?? 0,
  endedBy: authorization === null ? null : (ENDS[authorization.status] ?? null),
  expiresAt: null,
  unreadable,
});
