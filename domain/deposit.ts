import { z } from 'zod';
import { amountBetween } from './fields.ts';
import type { Mode } from './mode.ts';
import { MAX_AMOUNT_CENTS } from './money.ts';

export const TronNetwork = z.enum(['mainnet', 'nile', 'shasta', 'private']);
export type TronNetwork = z.infer<typeof TronNetwork>;

export const DepositStatus = z.enum([
  'awaiting_payment',
  'confirming',
  'confirmed',
  'expired',
  'needs_review',
  'returned',
]);
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

/** Of one deposit: $1 to $100,000,000. A payment below the first is not worth its fee, one above the other not one payment. */
const AMOUNT_LIMITS = { leastCents: 100, mostCents: 10_000_000_000 };

/** Body of POST /funding/deposit-address. */
export const DepositRequest = z.strictObject({
  amount: amountBetween(AMOUNT_LIMITS.leastCents, AMOUNT_LIMITS.mostCents).meta({
    description: 'Cents to be credited: $1 to $100,000,000.',
  }),
});
export type DepositRequest = z.infer<typeof DepositRequest>;

const Payment = z.object({
  tx_hash: z.string(),
  amount_usdt: z.string().meta({ description: 'A decimal, exact to the last of six places.' }),
  block: z.int(),
  time: z.iso.datetime().meta({ description: "The block's time." }),
});

/** The deposit instruction and the history entry alike (decisions.md, "Deposit"). */
export const DepositResource = z.object({
  id: z.string(),
  object: z.literal('deposit'),
  status: DepositStatus,
  amount: z.int().meta({ description: 'Cents to be credited.' }),
  currency: z.literal('USD'),
  asset: z.literal('USDT'),
  network: z.literal('TRC-20'),
  contract_address: z.string().meta({ description: 'Only tokens of this contract count.' }),
  address: z
    .string()
    .meta({ description: 'Of this deposit alone. Send one payment of exactly amount_usdt to it.' }),
  amount_usdt: z.string().meta({ description: 'The exact amount to send.' }),
  received_amount: z
    .int()
    .meta({ description: 'Cents: everything that arrived at the address, rounded down.' }),
  tx_hash: z.string().nullable().meta({ description: "The first payment's." }),
  payments: z
    .array(Payment)
    .meta({ description: `What arrived, oldest first; at most the first ${MOST_PAYMENTS_SHOWN}.` }),
  mode: z.literal('live'),
  created: z.iso.datetime(),
  expires_at: z.iso.datetime(),
  confirmed_at: z.iso.datetime().nullable(),
});
export type DepositResource = z.infer<typeof DepositResource>;

/** A row of table `deposit`, as the driver gives it, with its payments. */
export interface DepositRow {
  id: string;
  partner_id: string;
  mode: Mode;
  network: TronNetwork;
  contract_address: string;
  address: string;
  amount_cents: string;
  status: DepositStatus;
  received_micro_usdt: string;
  credited_cents: string;
  created_at: string | Date;
  expires_at: string | Date;
  confirmed_at: string | Date | null;
  /** In the chain's order; null where there is none. */
  payments: PaymentRow[] | null;
}

/** A row of table `deposit_payment`; its numbers come out of JSON or of the driver. */
export interface PaymentRow {
  tx_hash: string;
  log_index: number;
  /** Decimal digits: it can be larger than a safe integer. */
  value_micro_usdt: string;
  block_number: number | string;
  block_time: string | Date;
  denied_by: string | null;
  status: PaymentStatus;
  review_reason: ReviewReason | null;
}

export function presentDeposit(row: DepositRow): DepositResource {
  const payments = (row.payments ?? []).slice(0, MOST_PAYMENTS_SHOWN);
  return {
    id: row.id,
    object: 'deposit',
    status: row.status,
    amount: Number(row.amount_cents),
    currency: 'USD',
    asset: 'USDT',
    network: 'TRC-20',
    contract_address: row.contract_address,
    address: row.address,
    amount_usdt: usdt(BigInt(row.amount_cents) * MICRO_USDT_PER_CENT, 2),
    received_amount: wholeCents(BigInt(row.received_micro_usdt)),
    tx_hash: payments[0]?.tx_hash ?? null,
    payments: payments.map((payment) => ({
      tx_hash: payment.tx_hash,
      amount_usdt: usdt(BigInt(payment.value_micro_usdt), 2),
      block: Number(payment.block_number),
      time: new Date(payment.block_time).toISOString(),
    })),
    mode: 'live',
    created: new Date(row.created_at).toISOString(),
    expires_at: new Date(row.expires_at).toISOString(),
    confirmed_at: row.confirmed_at === null ? null : new Date(row.confirmed_at).toISOString(),
  };
}

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
