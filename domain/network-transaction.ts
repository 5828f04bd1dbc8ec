import { z } from 'zod';
import { AmountCents, amountBetween, Label, NetworkId } from './fields.ts';
import { MAX_AMOUNT_CENTS } from './money.ts';
import { TransactionType } from './transaction.ts';

const Words = Label(255).nullable().default(null);

/**
 * The network's id of what the transaction is part of, by which all of it can be read; null if the network
 * has none.
 */
const PaymentId = NetworkId.nullable().default(null);

const NetworkMerchant = z.strictObject({ name: Words, categoryCode: Words, city: Words, country: Words });

/**
 * A transaction that a card network reports, in our words (docs/decisions/card-networks.md). The simulated
 * network posts it like this; the ingress of another one translates. Strict: an unknown field could mean that
 * a different amount moves, or none.
 */
export const NetworkTransaction = z.strictObject({
  networkCardId: NetworkId,
  networkTransactionId: NetworkId,
  type: TransactionType,
  amountCents: AmountCents,
  currency: z.literal('USD'),
  forced: z.boolean().default(true),
  networkPaymentId: PaymentId,
  merchant: NetworkMerchant.prefault({}),
});
export type NetworkTransaction = z.infer<typeof NetworkTransaction>;

/**
 * What the card network reports about an authorization (docs/operating.md, "Authorizations on the simulated
 * network").
 * `approval`: it approved a request, as we decided or without us; booked whatever our rules say. `decline`:
 * it declined one, as we decided or by itself; `networkAuthorizationId` is there even if it is null, unlike
 * in a {@link NetworkTransaction}. `total`: the authorization's amount is now `amountCents`, more or less
 * than before.
 */
export const NetworkAuthorizationReport = z
  .strictObject({
    networkCardId: NetworkId,
    networkTransactionId: NetworkId,
    networkAuthorizationId: NetworkId.nullable().default(null),
    type: z.enum(['clearing', 'reversal', 'expiry', 'approval', 'decline', 'total']),
    amountCents: AmountCents.nullable().default(null),
    currency: z.literal('USD'),
    final: z.boolean().default(true),
    /**
     * Of an approval, if the network's message names no request: its place among the approved ones of the
     * same amount, from 1, in the authorization.
     */
    approvalNumber: z.int().positive().nullable().default(null),
    /**
     * The same of a decline: its place among all of the authorization's requests of the same amount, approved
     * or declined.
     */
    requestNumber: z.int().positive().nullable().default(null),
    /** When the network lets the authorization expire; null if it does not say. */
    expiresAt: z.iso.datetime().nullable().default(null),
    networkPaymentId: PaymentId,
    merchant: NetworkMerchant.prefault({}),
  })
  .refine(({ type, amountCents }) => type === 'reversal' || type === 'expiry' || amountCents !== null, {
    path: ['amountCents'],
    message: 'is required',
  })
  .refine(
    ({ type, networkAuthorizationId }) =>
      type === 'clearing' || type === 'decline' || networkAuthorizationId !== null,
    { path: ['networkAuthorizationId'], message: 'is required for all but a clearing or a decline' },
  );
export type NetworkAuthorizationReport = z.infer<typeof NetworkAuthorizationReport>;

/** What the card network asks about an authorization: it waits for the decision. */
export const NetworkAuthorizationRequest = z.strictObject({
  networkCardId: NetworkId,
  networkTransactionId: NetworkId,
  networkAuthorizationId: NetworkId.nullable().default(null),
  type: z.enum(['authorization', 'increment']),
  amountCents: amountBetween(0, MAX_AMOUNT_CENTS),
  currency: z.literal('USD'),
  merchant: NetworkMerchant.prefault({}),
});
export type NetworkAuthorizationRequest = z.infer<typeof NetworkAuthorizationRequest>;

/**
 * What can be read of a report that is not a whole {@link NetworkTransaction} or {@link
 * NetworkAuthorizationReport}.
 */
const Parts = z.object({
  networkTransactionId: NetworkId,
  networkCardId: NetworkId.nullable().catch(null),
  type: TransactionType.nullable().catch(null),
  amountCents: AmountCents.nullable().catch(null),
  currency: z.string().max(20).nullable().catch(null),
  forced: z.boolean().catch(true),
  networkPaymentId: PaymentId.catch(null),
  merchant: NetworkMerchant.catch({ name: null, categoryCode: null, city: null, country: null }),
});

/** What the network reported, as far as we understand it. A part that can't be read is null. */
export interface ReportedTransaction extends z.infer<typeof Parts> {
  /**
   * Null if this release does not understand all of it: an unknown type, currency or field, or an amount out
   * of range.
   */
  whole: NetworkTransaction | NetworkAuthorizationReport | null;
  /** The names of the fields that it does not understand, at most ten. */
  unreadable: string[];
}

/**
 * @param value the body's JSON value. @returns null if it has no id, so it could not be recognised when it is
 * repeated
 */
export function readReport(value: unknown): ReportedTransaction | null {
  const parts = Parts.safeParse(value);
  if (!parts.success) return null;
  const whole = NetworkTransaction.safeParse(value);
  if (whole.success) return { ...parts.data, whole: whole.data, unreadable: [] };
  const report = NetworkAuthorizationReport.safeParse(value);
  if (report.success) return { ...parts.data, whole: report.data, unreadable: [] };
  const fields = whole.error.issues.flatMap(({ path, ...issue }) =>
    issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...path, key]) : [path],
  );
  const names = fields.map((path) => path.join('.').slice(0, 100));
  return { ...parts.data, whole: null, unreadable: [...new Set(names)].slice(0, 10) };
}

/**
 * Why a reported transaction is kept and not booked. `card_unknown`: no live card has its id at the network.
 * `card_not_issued`: its card is still being issued. `card_failed`: by our record, its card was never issued.
 * `id_conflict`: a different transaction was booked under its id. `unbookable`: a balance or a fee would
 * leave the safe integers.
 * `authorization_unknown`: it ends or changes an authorization whose request has not arrived.
 * `not_understood`: this release does not know its type, its currency or a field.
 */
export const WHY_KEPT = [
  'card_unknown',
  'card_not_issued',
  'card_failed',
  'id_conflict',
  'unbookable',
  'authorization_unknown',
  'not_understood',
] as const;
export type WhyKept = (typeof WHY_KEPT)[number];
