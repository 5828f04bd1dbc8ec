import { z } from 'zod';
import { AmountCents, Label, NetworkId } from './fields.ts';
import { TransactionType } from './transaction.ts';

const Words = Label(255).nullable().default(null);

const NetworkMerchant = z.strictObject({ name: Words, categoryCode: Words, city: Words, country: Words });

/**
 * A transaction as the card network reports it (docs/operating.md, "Transactions on the simulated network"). Strict, unlike
 * callbacks: an unknown field could mean that a different amount moves, or none.
 */
export const NetworkTransaction = z.strictObject({
  networkCardId: NetworkId,
  networkTransactionId: NetworkId,
  type: TransactionType,
  amountCents: AmountCents,
  currency: z.literal('USD'),
  forced: z.boolean().default(true),
  merchant: NetworkMerchant.prefault({}),
});
export type NetworkTransaction = z.infer<typeof NetworkTransaction>;

/** What can be read of a report that is not a whole {@link NetworkTransaction}. */
const Parts = z.object({
  networkTransactionId: NetworkId,
  networkCardId: NetworkId.nullable().catch(null),
  type: TransactionType.nullable().catch(null),
  amountCents: AmountCents.nullable().catch(null),
  currency: z.string().max(20).nullable().catch(null),
  forced: z.boolean().catch(true),
  merchant: NetworkMerchant.catch({ name: null, categoryCode: null, city: null, country: null }),
});

/** What the network reported, as far as we understand it. A part that can't be read is null. */
export interface ReportedTransaction extends z.infer<typeof Parts> {
  /** Null if this release does not understand all of it: an unknown type, currency or field, or an amount out of range. */
  whole: NetworkTransaction | null;
  /** The names of the fields that it does not understand, at most ten. */
  unreadable: string[];
}

/** @param value the body's JSON value. @returns null if it has no id, so it could not be recognised when it is repeated */
export function readReport(value: unknown): ReportedTransaction | null {
  const parts = Parts.safeParse(value);
  if (!parts.success) return null;
  const whole = NetworkTransaction.safeParse(value);
  if (whole.success) return { ...parts.data, whole: whole.data, unreadable: [] };
  const fields = whole.error.issues.flatMap(({ path, ...issue }) =>
    issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...path, key]) : [path],
  );
  const names = fields.map((path) => path.join('.').slice(0, 100));
  return { ...parts.data, whole: null, unreadable: [...new Set(names)].slice(0, 10) };
}

/**
 * Why a reported transaction is kept and not booked. `card_unknown`: no live card has its id at the network.
 * `card_not_issued`: its card is still being issued. `card_failed`: by our record, its card was never issued. `id_conflict`:
 * a different transaction was booked under its id. `unbookable`: a balance or a fee would leave the safe integers.
 * `not_understood`: this release does not know its type, its currency or a field.
 */
export const WHY_KEPT = [
  'card_unknown',
  'card_not_issued',
  'card_failed',
  'id_conflict',
  'unbookable',
  'not_understood',
] as const;
export type WhyKept = (typeof WHY_KEPT)[number];
