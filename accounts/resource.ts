import { z } from 'zod';
import { type AccountClock, shownTime } from '../domain/account-clock.ts';
import { ObjectType, Usd } from '../domain/fields.ts';
import { objectOf } from '../domain/ids.ts';
import { Mode } from '../domain/mode.ts';
import type { PrepaidEntry } from '../ledger/balances.ts';
import type { Balance } from '../ledger/posting.ts';

/** available + held = total (docs/partners/money-fees-and-limits.md). */
export const BalanceResource = z
  .object({
    object: ObjectType('balance'),
    mode: Mode,
    currency: Usd,
    available: z
      .int()
      .describe('Cents you can spend. Below zero if fees or late debits exceeded the balance.'),
    held: z.int().min(0).describe('Cents reserved for operations that are still in progress.'),
    total: z.int().describe('`available` + `held`, in cents.'),
  })
  .meta({ id: 'Balance', description: 'Your prepaid balance in one mode.' });
export type BalanceResource = z.infer<typeof BalanceResource>;

export function presentBalance(mode: Mode, balance: Balance): BalanceResource {
  return {
    object: 'balance',
    mode,
    currency: 'USD',
    available: balance.availableCents,
    held: balance.heldCents,
    total: balance.totalCents,
  };
}

export const BalanceTransactionType = z
  .enum([
    'faucet_credit',
    'deposit',
    'card_issue',
    'card_topup',
    'card_withdrawal',
    'card_activation_fee',
    'card_funding_fee',
    'transaction_fee',
    'decline_fee',
    'card_release',
    'late_debit',
    'late_refund',
    'adjustment',
  ])
  .meta({
    id: 'BalanceTransactionType',
    description:
      'Why the balance changed. `card_release`: what is free on a blocked card. `late_debit`: what a card could not pay of a ' +
      'purchase that the network had already settled. `late_refund`: a refund to a blocked card. `adjustment`: a correction ' +
      'made by us.',
  });
export type BalanceTransactionType = z.infer<typeof BalanceTransactionType>;

export const BalanceTransactionSource = z
  .object({
    type: z
      .enum(['card', 'topup', 'withdrawal', 'transaction', 'faucet_credit', 'deposit', 'adjustment'])
      .describe('The kind of object that changed the balance.'),
    id: z.string().describe('Its id.'),
  })
  .meta({ id: 'BalanceTransactionSource', description: 'The object that changed the balance.' });
export type BalanceTransactionSource = z.infer<typeof BalanceTransactionSource>;

/** One change to the prepaid balance (docs/partners/balance.md). All changes add up to its total. */
export const BalanceTransactionResource = z
  .object({
    id: z.string().describe('Prefix `btx_`. Ids sort in the order of the changes.'),
    object: ObjectType('balance_transaction'),
    type: BalanceTransactionType,
    amount: z.int().describe('Cents: positive for a credit, negative for a debit.'),
    balance_after: z.int().describe('The total balance right after this change, in cents.'),
    source: BalanceTransactionSource,
    mode: Mode,
    created: z.iso.datetime().describe('When the balance changed.'),
  })
  .meta({
    id: 'BalanceTransaction',
    description: 'One change to your balance. The amounts of all changes add up to its total.',
  });
export type BalanceTransactionResource = z.infer<typeof BalanceTransactionResource>;

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const TAIL_BITS = 75n;
const TAIL = (1n << TAIL_BITS) - 1n;

/**
 * The public id of a prepaid account's entry: the entry's number in the account's chain, so that ids sort in
 * order, then digits of its transfer's UUID, so that ids can't be guessed. Both are in the ledger, so the id
 * itself need not be stored.
 */
export function balanceTransactionId(version: number, transferId: string): string {
  const value = (BigInt(version) << TAIL_BITS) | (BigInt(`0x${transferId.replaceAll('-', '')}`) & TAIL);
  const digits = value.toString(32).padStart(26, '0');
  return `btx_${Array.from(digits, (digit) => ALPHABET[Number.parseInt(digit, 32)]).join('')}`;
}

/** The number in the chain that an id of this shape encodes. The entry may not exist. */
export function parseVersion(balanceTransactionId: string): bigint {
  let value = 0n;
  for (const digit of balanceTransactionId.slice('btx_'.length)) {
    value = value * 32n + BigInt(ALPHABET.indexOf(digit));
  }
  return value >> TAIL_BITS;
}

/** The type that partners see for each kind of transfer to or from a prepaid balance. */
const TYPES = {
  fund_faucet: 'faucet_credit',
  fund_usdt: 'deposit',
  fund_test_usdt: 'deposit',
  issue_load: 'card_issue',
  topup: 'card_topup',
  withdrawal: 'card_withdrawal',
  fee_activation: 'card_activation_fee',
  fee_funding: 'card_funding_fee',
  fee_transaction: 'transaction_fee',
  fee_decline: 'decline_fee',
  block_release: 'card_release',
  late_debit: 'late_debit',
  late_refund: 'late_refund',
  adjustment_credit: 'adjustment',
  adjustment_debit: 'adjustment',
} as const satisfies Record<string, BalanceTransactionType>;
/** The ledger's codes of transfers to or from a prepaid balance. */
type PrepaidCode = keyof typeof TYPES;

/**
 * The type that partners see for a code of the ledger; undefined if its transfers don't change a prepaid
 * balance.
 */
export const toBalanceTransactionType = (code: string): BalanceTransactionType | undefined =>
  TYPES[code as PrepaidCode];

export function presentBalanceTransaction(entry: PrepaidEntry, mode: Mode): BalanceTransactionResource {
  return {
    id: balanceTransactionId(entry.version, entry.transferId),
    object: 'balance_transaction',
    type: TYPES[entry.code as PrepaidCode],
    amount: entry.amountCents,
    balance_after: entry.balanceAfterCents,
    source: toSource(entry.operationId),
    mode,
    created: entry.createdAt.toISOString(),
  };
}

/** What a ledger operation is about: its id ends with the object's. */
function toSource(operationId: string): BalanceTransactionSource {
  const id = operationId.slice(operationId.lastIndexOf('/') + 1);
  const type = BalanceTransactionSource.shape.type.options.find((one) => one === objectOf(id));
  if (type === undefined) throw new Error(`unknown ledger operation ${operationId}`);
  return { type, id };
}

/** docs/partners/testing.md */
export const TestClockResource = z
  .object({
    object: ObjectType('test_clock'),
    now: z.iso.datetime().describe('What time it is in your test mode.'),
    offset_seconds: z
      .int()
      .min(0)
      .describe('How far it is ahead of real time: all the seconds you have advanced it by.'),
    status: z
      .enum(['ready', 'advancing'])
      .describe('`advancing` until everything that was due by the last advance has begun.'),
    mode: z.literal('test').describe('Always `test`.'),
  })
  .meta({ id: 'TestClock', description: "Your sandbox's clock." });
export type TestClockResource = z.infer<typeof TestClockResource>;

export const presentTestClock = (clock: AccountClock, isAdvancing: boolean): TestClockResource => ({
  object: 'test_clock',
  now: shownTime(clock).toISOString(),
  offset_seconds: clock?.offsetSeconds ?? 0,
  status: isAdvancing ? 'advancing' : 'ready',
  mode: 'test',
});
