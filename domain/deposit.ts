import { z } from 'zod';
import { MAX_AMOUNT_CENTS } from './money.ts';

export const TronNetwork = z.enum(['mainnet', 'nile', 'shasta', 'private']);
export type TronNetwork = z.infer<typeof TronNetwork>;

export const DepositStatus = z
  .enum(['awaiting_payment', 'confirming', 'confirmed', 'expired', 'needs_review', 'returned'])
  .meta({
    id: 'DepositStatus',
    description:
      '`awaiting_payment`: no payment has been seen. `confirming`: a payment is in a block that is not final yet. ' +
      '`confirmed`: your balance was credited. `expired`: nothing arrived in time. `needs_review`: something arrived that ' +
      'is not the one exact payment. `returned`: what arrived was sent back.',
  });
export type DepositStatus = z.infer<typeof DepositStatus>;

/** How a payment stands. `found`: it is recorded and not judged yet. */
export type PaymentStatus = 'found' | 'credited' | 'in_review' | 'returned';

/** Why a payment waits for an operator. */
export type ReviewReason =
  | 'other_amount'
  | 'late'
  | 'already_paid'
  | 'nodes_disagree'
  | 'balance_out_of_range';

/** USDT has six decimals. */
export const MICRO_USDT_PER_CENT = 10_000n;

/** How many payments of a deposit are shown; only someone who sends dust on purpose makes more. */
export const MOST_PAYMENTS_SHOWN = 100;

/** Rounded down, and at most the largest amount there is: a private chain's token can mint more. */
export function wholeCents(valueMicroUsdt: bigint): number {
  const cents = valueMicroUsdt / MICRO_USDT_PER_CENT;
  return cents > BigInt(MAX_AMOUNT_CENTS) ? MAX_AMOUNT_CENTS : Number(cents);
}

/** `25.00`, `0.123456`: no more places than it needs, and at least `leastPlaces`. */
export function usdt(valueMicroUsdt: bigint, leastPlaces: number): string {
  const digits = valueMicroUsdt.toString().padStart(7, '0');
  const places = digits.slice(-6).replace(/0+$/, '').padEnd(leastPlaces, '0');
  return places === '' ? digits.slice(0, -6) : `${digits.slice(0, -6)}.${places}`;
}

export type Judged = { status: 'credited' } | { status: 'in_review'; reason: ReviewReason };

/**
 * Judges a payment (decisions.md, "Deposit": "The first payment of the exact amount, in a block not later than
 * `expires_at`, is credited; everything else … puts the deposit into needs_review").
 * @param isPaid whether a payment of the exact amount was credited before by itself
 */
export function judgePayment(
  deposit: { amountCents: number; expiresAt: Date; isPaid: boolean },
  payment: { valueMicroUsdt: bigint; blockTime: Date; deniedBy: string | null },
): Judged {
  if (payment.deniedBy !== null) return { status: 'in_review', reason: 'nodes_disagree' };
  if (payment.valueMicroUsdt !== BigInt(deposit.amountCents) * MICRO_USDT_PER_CENT)
    return { status: 'in_review', reason: 'other_amount' };
  if (payment.blockTime > deposit.expiresAt) return { status: 'in_review', reason: 'late' };
  if (deposit.isPaid) return { status: 'in_review', reason: 'already_paid' };
  return { status: 'credited' };
}

/** How a deposit stands that has payments, all of them judged. */
export function statusOfPaid(
  payments: readonly { status: PaymentStatus }[],
): 'needs_review' | 'confirmed' | 'returned' {
  if (payments.some(({ status }) => status === 'in_review')) return 'needs_review';
  return payments.some(({ status }) => status === 'credited') ? 'confirmed' : 'returned';
}

/** What an operator decides about everything of a deposit that waits: it is credited, or was sent back. */
export interface DepositDecision {
  outcome: 'credited' | 'returned';
  reason: string;
  /** Of the deposit's row, as it was looked at. If it has changed since nothing is done: nobody decides on a payment unseen. */
  version?: number | undefined;
}

/** A decision that says what it is about. */
export interface VersionedDecision extends DepositDecision {
  version: number;
}

/** Why a decision is not carried out. Codes: they go into workflows' histories. */
export type WhyNotResolved =
  | 'nothing_in_review'
  | 'changed_meanwhile'
  | 'below_a_cent'
  | 'past_the_largest_balance'
  | 'unreadable_reason';

/** What became of a decision. `repeated`: the same one had been carried out before, by the same actor. */
export type DepositVerdict =
  | { resolved: true; creditedCents: number; repeated: boolean }
  | { resolved: false; because: WhyNotResolved };

const WHY_IN_REVIEW: Record<ReviewReason, string> = {
  other_amount: 'not the exact amount',
  late: 'in a block after the deposit expired',
  already_paid: 'the exact amount was already paid',
  nodes_disagree: 'another node denies it',
  balance_out_of_range: 'the balance would exceed its maximum',
};

/** Why a payment waits for an operator, in words; null for one that does not, and did not. */
export function whyInReview({
  review_reason,
  denied_by,
}: {
  review_reason: ReviewReason | null;
  denied_by: string | null;
}): string | null {
  if (review_reason === 'nodes_disagree' && denied_by !== null) return `the node ${denied_by} denies it`;
  return review_reason === null ? null : WHY_IN_REVIEW[review_reason];
}
