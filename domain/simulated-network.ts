import { z } from 'zod';
import { AmountCents, amountBetween, Label, NetworkId, printable } from './fields.ts';
import { MAX_AMOUNT_CENTS } from './money.ts';
import { TransactionType } from './transaction.ts';

// What the simulated network says about cards (docs/operator.md, "Transactions on the simulated network").
// Strict: an unknown field could mean that a different amount moves, or none.

const Words = Label(255).nullable().default(null);
const Id = NetworkId.nullable().default(null);
const Merchant = z.strictObject({ name: Words, categoryCode: Words, city: Words, country: Words });

const About = {
  networkCardId: NetworkId,
  /** Of the message. */
  networkTransactionId: NetworkId,
  currency: z.literal('USD'),
  merchant: Merchant.prefault({}),
};

/** A transaction by itself. */
const NetworkTransaction = z.strictObject({
  ...About,
  type: TransactionType,
  amountCents: AmountCents,
  /** The network settles it even if the card is blocked. */
  forced: z.boolean().default(true),
  /** What it is part of. */
  networkPaymentId: Id,
});

/** What became of an authorization. */
const NetworkReport = z
  .strictObject({
    ...About,
    type: z.enum(['clearing', 'reversal', 'expiry']),
    networkAuthorizationId: Id,
    networkPaymentId: Id,
    /** Null for a reversal of all that is left, and for an expiry. */
    amountCents: AmountCents.nullable().default(null),
    /** Whether a clearing is the last one. */
    final: z.boolean().default(true),
  })
  .refine(({ type, amountCents }) => type !== 'clearing' || amountCents !== null, {
    path: ['amountCents'],
    message: 'is required',
  })
  .refine(({ type, networkAuthorizationId }) => type === 'clearing' || networkAuthorizationId !== null, {
    path: ['networkAuthorizationId'],
    message: 'is required for all but a clearing',
  });

/** It asks about an authorization, and waits for the decision. */
export const NetworkRequest = z.strictObject({
  ...About,
  type: z.enum(['authorization', 'increment']),
  networkAuthorizationId: Id,
  amountCents: amountBetween(0, MAX_AMOUNT_CENTS),
});
export type NetworkRequest = z.infer<typeof NetworkRequest>;

/** What is read of something that is none of the above, so that a person can say what it means. */
const Unreadable = z.object({
  /** Empty if it can't be read: then a person says which card it is. */
  networkCardId: NetworkId.catch(''),
  networkTransactionId: NetworkId,
  networkAuthorizationId: Id.catch(null),
  networkPaymentId: Id.catch(null),
  type: z.string().max(100).transform(printable).catch('unknown'),
  amountCents: z.int().nullable().catch(null),
  currency: z.string().max(20).transform(printable).nullable().catch(null),
  final: z.boolean().catch(true),
  merchant: Merchant.catch({ name: null, categoryCode: null, city: null, country: null }),
});

export type NetworkReport =
  | ({ isReadable: true } & (z.infer<typeof NetworkTransaction> | z.infer<typeof NetworkReport>))
  | ({ isReadable: false } & z.infer<typeof Unreadable>);

/**
 * Reads what the network reports.
 * @param value the body's JSON value
 * @returns an error if it has no id, so that it could not be recognised when it is repeated
 */
export function readReport(value: unknown): NetworkReport | z.ZodError {
  for (const shape of [NetworkTransaction, NetworkReport]) {
    const read = shape.safeParse(value);
    if (read.success) return { isReadable: true, ...read.data };
  }
  const parts = Unreadable.safeParse(value);
  if (parts.success) return { isReadable: false, ...parts.data };
  return NetworkTransaction.safeParse(value).error ?? parts.error;
}
