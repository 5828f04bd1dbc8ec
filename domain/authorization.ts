import { z } from 'zod';
import type { CardStatus } from './card-status.ts';

export const DeclineReason = z
  .enum([
    'insufficient_card_balance',
    'card_frozen',
    'card_blocked',
    'merchant_category_not_allowed',
    'merchant_country_not_allowed',
    'spending_limit_exceeded',
    'authorization_not_pending',
    'declined_by_network',
    'simulated_decline',
  ])
  .meta({
    id: 'DeclineReason',
    description:
      "`insufficient_card_balance`: the card's available balance was less than the amount. `card_frozen`, `card_blocked`: the " +
      'status of the card at the time. `merchant_category_not_allowed`, `merchant_country_not_allowed`, ' +
      '`spending_limit_exceeded`: the spending controls of the card or your account. `authorization_not_pending`: the ' +
      'authorization to increase had ended. `declined_by_network`: the card network declined. `simulated_decline`: you asked ' +
      'for a decline.',
  });
export type DeclineReason = z.infer<typeof DeclineReason>;

export const AuthorizationStatus = z.enum(['pending', 'declined', 'closed', 'reversed', 'expired']).meta({
  id: 'AuthorizationStatus',
  description:
    '`pending`: it holds money on the card. `declined`: it was never approved. `closed`: the merchant has cleared it, and ' +
    'nothing is held any more. `reversed`, `expired`: it ended without a clearing.',
});
export type AuthorizationStatus = z.infer<typeof AuthorizationStatus>;

export const AuthorizationRequest = z
  .object({
    type: z
      .enum(['authorization', 'increment'])
      .describe('`authorization`: the first request. `increment`: a request for more.'),
    amount: z.int().min(1).describe('Cents that the merchant asked for.'),
    approved: z.boolean().describe('Whether the amount was approved.'),
    decline_reason: DeclineReason.nullable().describe('Why it was declined. Null if it was approved.'),
    created: z.iso.datetime().describe('When the merchant asked.'),
  })
  .meta({ id: 'AuthorizationRequest', description: "A merchant's request for money on the card." });
export type AuthorizationRequest = z.infer<typeof AuthorizationRequest>;

/** How many requests an authorization can have, the first and declined ones included. */
export const MAX_REQUESTS = 100;

/**
 * The part of an authorization that changes, in cents. While it is pending, it holds what the merchant can still
 * clear or give back. One that has ended and is pending again holds only what was approved since then.
 */
export interface AuthorizationState {
  status: AuthorizationStatus;
  amountCents: number;
  heldCents: number;
  settledCents: number;
}

/**
 * Decides whether a card pays an amount (docs/partners/authorizations.md): by its status, then by spending
 * controls, then by its available balance.
 * @param refusedByControls why spending controls refuse it; null if they don't
 * @returns why not; null if it does
 */
export function decideDecline(
  card: { status: CardStatus; availableCents: number },
  amountCents: number,
  refusedByControls: DeclineReason | null = null,
): DeclineReason | null {
  if (card.status === 'frozen') return 'card_frozen';
  if (card.status !== 'active') return 'card_blocked';
  if (refusedByControls !== null) return refusedByControls;
  return amountCents > card.availableCents ? 'insufficient_card_balance' : null;
}

/** Who pays how many cents of a clearing. */
interface ClearingShares {
  /** The authorization's hold, which is money on the card. */
  fromHoldCents: number;
  /** What else is on the card. */
  fromAvailableCents: number;
  /** The account's prepaid balance, for what the card lacks. */
  fromPartnerCents: number;
}

/** A clearing is never declined: what its hold and the card can't pay, the prepaid balance pays. */
export function clearingShares(
  amountCents: number,
  { heldCents, availableCents }: { heldCents: number; availableCents: number },
): ClearingShares {
  const fromHoldCents = Math.min(amountCents, heldCents);
  const fromAvailableCents = Math.min(amountCents - fromHoldCents, availableCents);
  return {
    fromHoldCents,
    fromAvailableCents,
    fromPartnerCents: amountCents - fromHoldCents - fromAvailableCents,
  };
}

/**
 * An authorization once it is approved.
 * @param cleared what was cleared of it before, because its clearing overtook its request
 */
export function approvedState(
  amountCents: number,
  cleared: { cents: number; isFinal: boolean } = { cents: 0, isFinal: false },
): AuthorizationState {
  const leftCents = cleared.isFinal ? 0 : Math.max(0, amountCents - cleared.cents);
  return {
    status: leftCents > 0 ? 'pending' : 'closed',
    amountCents,
    heldCents: leftCents,
    settledCents: cleared.cents,
  };
}

/** An authorization once more of it is approved. One that has ended is pending again. */
export function incrementedState(state: AuthorizationState, amountCents: number): AuthorizationState {
  return {
    ...state,
    status: 'pending',
    amountCents: state.amountCents + amountCents,
    heldCents: state.heldCents + amountCents,
  };
}

/** An authorization once a part of it is cleared. It may have ended before. */
export function clearedState(
  state: AuthorizationState,
  clearing: { amountCents: number; isFinal: boolean },
): AuthorizationState {
  const isOver = clearing.isFinal || state.status !== 'pending';
  const leftCents = isOver ? 0 : Math.max(0, state.heldCents - clearing.amountCents);
  return {
    status: leftCents > 0 ? 'pending' : 'closed',
    amountCents: state.amountCents,
    heldCents: leftCents,
    settledCents: state.settledCents + clearing.amountCents,
  };
}

/**
 * A pending authorization once the merchant gives back a part of it, or all.
 * @param backCents at most what it holds
 */
export function reversedState(state: AuthorizationState, backCents: number): AuthorizationState {
  const { amountCents, heldCents, settledCents } = state;
  const leftCents = heldCents - backCents;
  return {
    status: leftCents > 0 ? 'pending' : settledCents > 0 ? 'closed' : 'reversed',
    amountCents: amountCents - backCents,
    heldCents: leftCents,
    settledCents,
  };
}

/** A pending authorization once its time is over. */
export function expiredState({ amountCents, settledCents }: AuthorizationState): AuthorizationState {
  return { status: settledCents > 0 ? 'closed' : 'expired', amountCents, heldCents: 0, settledCents };
}
