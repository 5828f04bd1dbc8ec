import { z } from 'zod';
import { amountBetween, ObjectType, Usd } from './fields.ts';
import type { Mode } from './mode.ts';
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

/** Of one deposit: $1 to $100,000,000. A payment below the first is not worth its fee, one above the other not one payment. */
const AMOUNT_LIMITS = { leastCents: 100, mostCents: 10_000_000_000 };

/** Body of POST /funding/deposit-address. */
export const DepositRequest = z
  .strictObject({
    amount: amountBetween(AMOUNT_LIMITS.leastCents, AMOUNT_LIMITS.mostCents).describe(
      'Cents to credit: $1 to $100,000,000.',
    ),
  })
  .meta({ id: 'CreateDepositRequest', description: 'How much you want to deposit.' });
export type DepositRequest = z.infer<typeof DepositRequest>;

const Payment = z
  .object({
    tx_hash: z.string().describe('The transaction that made the payment.'),
    amount_usdt: z.string().describe('What arrived: a decimal with up to six places, exact.'),
    block: z.int().min(0).describe('The number of its block.'),
    time: z.iso.datetime().describe('The time of its block.'),
  })
  .meta({ id: 'DepositPayment', description: 'A USDT payment that reached the address of a deposit.' });

/** The deposit instruction and the history entry alike (decisions.md, "Deposit"). */
export const DepositResource = z
  .object({
    id: z.string().describe('Prefix `dep_`.'),
    object: ObjectType('deposit'),
    status: DepositStatus,
    amount: z.int().min(AMOUNT_LIMITS.leastCents).describe('Cents to be credited.'),
    currency: Usd,
    asset: z.literal('USDT').describe('The token to send: always `USDT`.'),
    network: z.literal('TRC-20').describe("TRON's token standard: always `TRC-20`."),
    contract_address: z.string().describe("The token's contract. Only tokens of this contract count."),
    address: z
      .string()
      .describe('The address to pay, for this deposit only. Send one payment of exactly `amount_usdt`.'),
    amount_usdt: z.string().describe('The exact amount to send.'),
    received_amount: z
      .int()
      .min(0)
      .describe('Everything that has arrived at the address, in cents, rounded down.'),
    tx_hash: z.string().nullable().describe('The transaction of the first payment. Null until one arrives.'),
    payments: z
      .array(Payment)
      .describe(`What arrived, oldest first. At most the first ${MOST_PAYMENTS_SHOWN} payments.`),
    mode: z.literal('live').describe('Always `live`: test mode has no deposits.'),
    created: z.iso.datetime().describe('When you asked for the address.'),
    expires_at: z.iso.datetime().describe('The payment has to be in a block by then.'),
    confirmed_at: z.iso
      .datetime()
      .nullable()
      .describe('When your balance was first credited. Null until then.'),
  })
  .meta({ id: 'Deposit', description: 'A USDT (TRC-20) address, and what has arrived at it.' });
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
