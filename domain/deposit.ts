import { z } from 'zod';
import { MAX_AMOUNT_CENTS } from './money.ts';

export const ChainName = z.enum(['mainnet', 'nile', 'shasta', 'private']);
export type ChainName = z.infer<typeof ChainName>;

/** Where the payments of test deposits are: on no chain. */
export const TEST_NETWORK = 'test';
export type DepositNetwork = ChainName | typeof TEST_NETWORK;

/** What payment arrives for a test deposit (docs/partners/testing.md). */
export const TestPayment = z
  .enum(['exact', 'short', 'over', 'late', 'none'], { error: 'must be exact, short, over, late or none' })
  .meta({
    id: 'TestPayment',
    description:
      'What arrives. `exact`, the default: the exact amount, in time. `short`: half of it. `over`: a dollar more. `late`: the ' +
      'exact amount, after the deposit has expired, which it does after a second. `none`: nothing.',
  });
export type TestPayment = z.infer<typeof TestPayment>;

export const DepositStatus = z
  .enum(['awaiting_payment', 'confirming', 'confirmed', 'expired', 'needs_review', 'returned'])
  .meta({
    id: 'DepositStatus',
    description:
      '`awaiting_payment`: no payment has been seen. `confirming`: a payment is in a block that is not final yet. ' +
      '`confirmed`: your balance was credited. `expired`: nothing arrived in time. `needs_review`: something other than the ' +
      'one exact payment arrived. `returned`: we sent back what arrived.',
  });
export type DepositStatus = z.infer<typeof DepositStatus>;

export const PaymentStatus = z.enum(['found', 'credited', 'in_review', 'returned']).meta({
  id: 'DepositPaymentStatus',
  description:
    '`found`: it has arrived, and we are about to credit or review it. `credited`: it is in your balance. `in_review`: one of ' +
    'us has to look at it. `returned`: we sent it back, or it stays uncredited.',
});
export type PaymentStatus = z.infer<typeof PaymentStatus>;

/** Why a payment is waiting for an operator. */
export type ReviewReason = 'other_amount' | 'late' | 'already_paid' | 'balance_out_of_range';

/** USDT has six decimals. */
export const MICRO_USDT_PER_CENT = 10_000n;

/** How many payments of a deposit are shown. Nobody has more unless they send dust on purpose. */
export const MAX_PAYMENTS_SHOWN = 100;

/** Rounded down, and capped at the largest amount of cents, which a private chain's token can exceed. */
export function wholeCents(valueMicroUsdt: bigint): number {
  const cents = valueMicroUsdt / MICRO_USDT_PER_CENT;
  return cents > BigInt(MAX_AMOUNT_CENTS) ? MAX_AMOUNT_CENTS : Number(cents);
}

/**
 * What crediting the payments in review would add to the balance: what was kept, in whole cents, less what was
 * credited.
 * @param keptMicroUsdt all payments but those that were sent back
 */
export const creditableCents = (keptMicroUsdt: bigint, creditedCents: bigint): bigint => {
  const cents = keptMicroUsdt / MICRO_USDT_PER_CENT - creditedCents;
  return cents > 0n ? cents : 0n;
};

/** `25.00`, `0.123456`: at least `leastPlaces` decimal places, and no more than needed. */
export function usdt(valueMicroUsdt: bigint, leastPlaces: number): string {
  const digits = valueMicroUsdt.toString().padStart(7, '0');
  const places = digits.slice(-6).replace(/0+$/, '').padEnd(leastPlaces, '0');
  return places === '' ? digits.slice(0, -6) : `${digits.slice(0, -6)}.${places}`;
}

type Judged = { status: 'credited' } | { status: 'in_review'; reason: ReviewReason };

/**
 * Judges a payment (docs/partners/funding.md): the first payment of the exact amount, in a block not later
 * than `expires_at`, is credited; everything else is reviewed.
 * @param isPaid whether an earlier payment of the exact amount was credited automatically
 */
export function judgePayment(
  deposit: { amountCents: number; expiresAt: Date; isPaid: boolean },
  payment: { valueMicroUsdt: bigint; blockTime: Date },
): Judged {
  if (payment.valueMicroUsdt !== BigInt(deposit.amountCents) * MICRO_USDT_PER_CENT)
    return { status: 'in_review', reason: 'other_amount' };
  if (payment.blockTime > deposit.expiresAt) return { status: 'in_review', reason: 'late' };
  if (deposit.isPaid) return { status: 'in_review', reason: 'already_paid' };
  return { status: 'credited' };
}

/** The status of a deposit that has payments, all of them judged. */
export function paidStatus(
  payments: readonly { status: PaymentStatus }[],
): 'needs_review' | 'confirmed' | 'returned' {
  if (payments.some(({ status }) => status === 'in_review')) return 'needs_review';
  return payments.some(({ status }) => status === 'credited') ? 'confirmed' : 'returned';
}

/**
 * An operator's decision about all payments of a deposit that are in review: credit them, or record that they
 * were sent back.
 */
export interface DepositDecision {
  outcome: 'credited' | 'returned';
  reason: string;
  /**
   * The version of the deposit that the operator saw. If it has changed since, nothing is done: nobody
   * decides on a payment unseen.
   */
  version?: number | undefined;
}

/** A decision together with the deposit it is about. */
export interface VersionedDecision extends DepositDecision {
  version: number;
}

/** Why a decision was not carried out. These codes go into workflow histories. */
export type WhyNotResolved =
  | 'nothing_in_review'
  | 'changed_meanwhile'
  | 'version_needed'
  | 'below_a_cent'
  | 'past_the_largest_balance'
  | 'unreadable_reason';

/** The result of a decision. `repeated`: the same actor had already carried out the same one. */
export type DepositVerdict =
  | { resolved: true; creditedCents: number; repeated: boolean }
  | { resolved: false; because: WhyNotResolved };

/** Why a payment is, or was, in review, in words. */
export const WHY_IN_REVIEW: Readonly<Record<ReviewReason, string>> = {
  other_amount: 'not the exact amount',
  late: 'in a block after the deposit expired',
  already_paid: 'the exact amount was already paid',
  balance_out_of_range: 'the balance would exceed its maximum',
};

/** What a node says about a payment. */
export interface NodeSays {
  /** Host and port. */
  node: string;
  /** `shows it`, `denies it`, or why it is no witness. */
  says: string;
}

/** What the scan last saw of a node. */
export interface NodeState {
  /** Host and port; nothing of its path or key. */
  name: string;
  state: 'in_use' | 'standby' | 'behind' | 'failing' | 'contradicting';
  /** A short code; null if there is none. */
  problem: string | null;
  /**
   * What it says about the block after the last one taken; null if it was not asked. Rows of former releases
   * lack it.
   */
  says?: string | null;
  /** ISO 8601. */
  since: string;
}
