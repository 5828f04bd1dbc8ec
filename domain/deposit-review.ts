import type { DepositDecision, PaymentRow, ReviewReason } from './deposit.ts';

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
}: Pick<PaymentRow, 'review_reason' | 'denied_by'>): string | null {
  if (review_reason === 'nodes_disagree' && denied_by !== null) return `the node ${denied_by} denies it`;
  return review_reason === null ? null : WHY_IN_REVIEW[review_reason];
}
