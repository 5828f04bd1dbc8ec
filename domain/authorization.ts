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
