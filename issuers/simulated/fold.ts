import type { DeclineReason } from '../../domain/authorization.ts';
import {
  type FoldedPayment,
  NOWHERE,
  type PaymentEnd,
  type PaymentMerchant,
  type UnnamedSnapshot,
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

/** A payment of the simulated network's before its first message. */
export const NOTHING_FOLDED: FoldedPayment = {
  version: [0],
  authorizedCents: 0,
  heldCents: 0,
  endedBy: null,
  expiresAt: null,
  unreadable: [],
  isAuthorized: false,
  early: { cents: 0, isFinal: false, unreadableId: null },
};

/**
 * Folds in one message more. The caller sees to it that each is folded in once. It is pending as long as it
 * holds something; one that has ended and is pending again holds only what was approved since then.
 */
export function foldMessage(before: FoldedPayment, message: SimulatedMessage): FoldedPayment {
  const { isAuthorized, heldCents, early } = before;
  const amountCents = message.amountCents ?? 0;
  const { isFinal } = message;
  const folded = { ...before, version: before.version.map((messages) => messages + 1) };
  switch (message.type) {
    case 'authorization':
    case 'increment': {
      if (message.reason !== null || amountCents === 0) return folded;
      const leftCents = early.isFinal ? 0 : Math.max(0, amountCents - early.cents);
      const holdsCents = heldCents + (isAuthorized ? amountCents : leftCents);
      const authorizedCents = before.authorizedCents + amountCents;
      return { ...hold(folded, holdsCents, 'clearing'), authorizedCents, isAuthorized: true };
    }
    case 'clearing': {
      if (isAuthorized) return hold(folded, isFinal ? 0 : Math.max(0, heldCents - amountCents), 'clearing');
      const cents = early.cents + amountCents;
      return { ...folded, early: { ...early, cents, isFinal: early.isFinal || isFinal } };
    }
    case 'reversal': {
      if (heldCents === 0) return folded;
      const backCents = Math.min(message.amountCents ?? heldCents, heldCents);
      const authorizedCents = before.authorizedCents - backCents;
      return { ...hold(folded, heldCents - backCents, 'reversal'), authorizedCents };
    }
    case 'expiry':
      return heldCents === 0 ? folded : hold(folded, 0, 'expiry');
    case 'unreadable': {
      const { id, at, written = { what: 'unknown', currency: null, amount: null } } = message;
      const unreadable = [...before.unreadable, { id, at, ...written }];
      if (written.what !== 'clearing' || !isFinal) return { ...folded, unreadable };
      if (isAuthorized) return { ...hold(folded, 0, 'clearing'), unreadable };
      return { ...folded, unreadable, early: { ...early, unreadableId: id } };
    }
    default:
      return folded;
  }
}

const hold = (folded: FoldedPayment, heldCents: number, by: PaymentEnd): FoldedPayment => ({
  ...folded,
  heldCents,
  endedBy: heldCents > 0 ? null : by,
});

/**
 * Folds in how much a clearing was that could not be read, as a person says. That it was the last is folded in
 * already, unless it came before a request was approved.
 */
export function foldHandMade(before: FoldedPayment, id: string, amountCents: number): FoldedPayment {
  const isLast = before.early.unreadableId === id;
  const clearing = { ...OURS, id, type: 'clearing', amountCents, isFinal: isLast } as const;
  const folded = foldMessage(before, clearing);
  return isLast ? { ...folded, early: { ...folded.early, unreadableId: null } } : folded;
}

/** Folds in that its time is over. */
export const foldExpiry = (before: FoldedPayment): FoldedPayment =>
  foldMessage(before, { ...OURS, id: 'expiry', type: 'expiry', amountCents: null, isFinal: true });

/** What of a message we say ourselves. */
const OURS = { reason: null, merchant: NOWHERE, refunds: null, at: '' } as const;

/**
 * The payment after a message. Of its requests and movements, only the message's own is in it: those before
 * it are booked.
 * @param folded with the message
 */
export function snapshotFolded(folded: FoldedPayment, message: SimulatedMessage): UnnamedSnapshot {
  const { id, type, reason, merchant, refunds } = message;
  const amountCents = message.amountCents ?? 0;
  const isAsked = type === 'authorization' || type === 'increment';
  const isDeclined = type === 'decline' || (type === 'purchase' && reason !== null);
  const moves = type === 'clearing' || type === 'refund' || (type === 'purchase' && reason === null);
  return {
    ...folded,
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
