import { z } from 'zod';
import {
  DepositStatus,
  MAX_PAYMENTS_SHOWN,
  MICRO_USDT_PER_CENT,
  PaymentStatus,
  usdt,
  wholeCents,
} from '../domain/deposit.ts';
import { amountBetween, ObjectType, Usd } from '../domain/fields.ts';
import { Mode } from '../domain/mode.ts';
import type { DEPOSIT_COLUMNS } from '../platform/db/columns.ts';
import type { Row } from '../platform/db/entities.ts';

/**
 * Of one deposit: $1 to $100,000,000. Less is not worth the network fee, and nobody sends more in one
 * payment.
 */
const AMOUNT_LIMITS = { leastCents: 100, mostCents: 10_000_000_000 };

/** Body of POST /funding/deposit-address. */
export const DepositRequest = z
  .strictObject({
    amount: amountBetween(AMOUNT_LIMITS.leastCents, AMOUNT_LIMITS.mostCents).describe(
      'Cents to credit: $1 to $100,000,000.',
    ),
  })
  .meta({ id: 'CreateDepositRequest', description: 'How much to deposit.' });
export type DepositRequest = z.infer<typeof DepositRequest>;

const Payment = z
  .object({
    tx_hash: z.string().describe('The transaction that made the payment.'),
    amount_usdt: z.string().describe('The exact amount that arrived: a decimal with up to six places.'),
    block: z.int().min(0).describe('The number of its block.'),
    time: z.iso.datetime().describe('The time of its block.'),
    status: PaymentStatus,
  })
  .meta({ id: 'DepositPayment', description: 'A USDT payment that reached the address of a deposit.' });

/** Both the deposit instruction and the history entry (docs/partners/funding.md). */
export const DepositResource = z
  .object({
    id: z.string().describe('Prefix `dep_`.'),
    object: ObjectType('deposit'),
    status: DepositStatus,
    amount: z.int().min(AMOUNT_LIMITS.leastCents).describe('Cents to be credited.'),
    currency: Usd,
    asset: z.literal('USDT').describe('The token to send: always `USDT`.'),
    network: z.literal('TRC-20').describe("TRON's token standard: always `TRC-20`."),
    contract_address: z.string().describe("The token's contract. We credit no other token."),
    address: z
      .string()
      .describe(
        'The address to pay, for this deposit only. Send one payment of exactly `amount_usdt`. In test mode it begins with `test_`, ' +
          'and no wallet accepts it.',
      ),
    amount_usdt: z.string().describe('The exact amount to send.'),
    received_amount: z
      .int()
      .min(0)
      .describe('Everything that has arrived at the address, credited or not, in cents, rounded down.'),
    credited_amount: z
      .int()
      .min(0)
      .describe('What is in your balance of it, in cents: all credits of this deposit together.'),
    tx_hash: z.string().nullable().describe('The transaction of the first payment. Null until one arrives.'),
    payments: z
      .array(Payment)
      .describe(`What arrived, oldest first. At most the first ${MAX_PAYMENTS_SHOWN} payments.`),
    mode: Mode,
    created: z.iso.datetime().describe('When you requested the address.'),
    expires_at: z.iso.datetime().describe('The payment has to be in a block by this time.'),
    confirmed_at: z.iso
      .datetime()
      .nullable()
      .describe('When your balance was first credited. Null until then.'),
  })
  .meta({ id: 'Deposit', description: 'A USDT (TRC-20) address and the payments it received.' });
export type DepositResource = z.infer<typeof DepositResource>;

/** The columns of a deposit's row that a deposit is presented from, and its payments. */
export interface DepositRow extends Row<'deposit', (typeof DEPOSIT_COLUMNS)[number]> {
  /** All payments together, in decimal digits. */
  received_micro_usdt: string;
  /** In the order of the chain; null if there are none. */
  payments: PaymentRow[] | null;
}

/**
 * A payment, from JSON or from its row. Its value is in decimal digits, since it can exceed the largest safe
 * integer.
 */
export interface PaymentRow
  extends Row<
    'deposit_payment',
    'tx_hash' | 'log_index' | 'value_micro_usdt' | 'block_time' | 'status' | 'review_reason'
  > {
  block_number: number | string;
}
export function presentDeposit(row: DepositRow): DepositResource {
  const payments = (row.payments ?? []).slice(0, MAX_PAYMENTS_SHOWN);
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
    credited_amount: Number(row.credited_cents),
    tx_hash: payments[0]?.tx_hash ?? null,
    payments: payments.map((payment) => ({
      tx_hash: payment.tx_hash,
      amount_usdt: usdt(BigInt(payment.value_micro_usdt), 2),
      block: Number(payment.block_number),
      time: new Date(payment.block_time).toISOString(),
      status: payment.status,
    })),
    mode: row.mode,
    created: new Date(row.created_at).toISOString(),
    expires_at: new Date(row.expires_at).toISOString(),
    confirmed_at: row.confirmed_at === null ? null : new Date(row.confirmed_at).toISOString(),
  };
}
