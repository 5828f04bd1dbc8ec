import { ApiError } from '../../domain/api-error.ts';
import type { PaymentSnapshot } from '../../domain/payment.ts';
import { comparePayments, type PaymentToBook } from '../../payments/book-payments.ts';
import type { BookedPayment } from '../../payments/booking-rows.ts';
import { isLasting } from '../../platform/db/is-retryable.ts';
import { describeError } from '../../platform/process/describe-error.ts';
import { isReadable } from '../card-network.ts';
import { bookRead, type ReadPayment } from '../inbox/book-payment.ts';
import { expectObject } from '../inbox/inbox.ts';
import { createInboxRoom } from '../inbox/room.ts';
import type { Finding } from './findings.ts';
import { type Look, tally, tallyCorrected, wasFound } from './look.ts';

/** What a payment would become here, or the error that keeps it from being compared. */
type Compared = BookedPayment | Error;

/**
 * What payments would become here, by their ids. One that can't be compared keeps no other from being compared.
 * @throws if the database does not answer
 */
export async function compareEach(
  look: Look,
  payments: readonly PaymentToBook[],
): Promise<Map<string, Compared>> {
  const { orm, authorizationTtlMs, logger } = look;
  const compared = new Map<string, Compared>();
  try {
    const booked = await comparePayments(orm.em.fork(), payments, authorizationTtlMs);
    for (const [index, { paymentId }] of payments.entries()) {
      const one = booked[index] ?? null;
      if (one !== null) compared.set(paymentId, one);
    }
  } catch (error) {
    if (!(error instanceof ApiError || isLasting(error))) throw error;
    const [only, ...others] = payments;
    if (only !== undefined && others.length === 0) {
      const { paymentId } = only;
      logger.error({ paymentId, error: describeError(error) }, 'could not compare a payment');
      return compared.set(paymentId, error as Error);
    }
    for (const payment of payments)
      for (const [paymentId, one] of await compareEach(look, [payment])) compared.set(paymentId, one);
  }
  return compared;
}

/**
 * Takes a payment that the network has: one that differed at the look before, too, is corrected.
 * @param ours what it would become here; null if its card is not known, or can't be used
 * @param isWaiting whether the inbox has it, with its reason
 */
export async function takePayment(
  look: Look,
  listed: PaymentSnapshot,
  ours: Compared | null,
  isWaiting: boolean,
): Promise<void> {
  const { found, before, until: readAt, logger } = look;
  const { paymentId } = listed;
  if (isWaiting && (ours === null || ours instanceof Error)) return;
  let findings = [notCompared(paymentId)];
  try {
    if (ours !== null && !(ours instanceof Error) && isSame(ours)) {
      // What we know of it is not all that the network says, and nobody sees a difference.
      if (ours.isChanged) await book(look, { paymentId, snapshot: listed, readAt });
      return tally(found, 'matched');
    }
    if (!(ours instanceof Error)) findings = differencesOf(listed, ours);
    const isFoundAgain = findings.some((finding) => wasFound(before, finding));
    if (isFoundAgain && (await correct(look, listed, findings))) return;
  } catch (error) {
    logger.error({ paymentId, error: describeError(error) }, 'could not correct a payment');
  }
  found.isToCorrect = true;
  for (const finding of findings) tally(found, finding);
}

/**
 * Books a payment, or has somebody look at it. It is read by itself first, because what a list says of its holds
 * may be older than its elements.
 * @returns whether it differs no more, or somebody is shown why it can't be booked
 */
async function correct(look: Look, listed: PaymentSnapshot, findings: readonly Finding[]): Promise<boolean> {
  const { network, cardNetwork, found, logger } = look;
  const { paymentId, networkCardId } = listed;
  const readAt = new Date();
  const snapshot = await network.readPayment(paymentId, 'reconciliation');
  if (snapshot === null || !isReadable(snapshot)) return false;
  const booked = await book(look, { paymentId, snapshot, readAt });
  if (booked !== null && 'reason' in booked) {
    const object = { kind: 'payment', id: paymentId, networkCardId, state: null } as const;
    await expectObject({ ...look, room: createInboxRoom(look.orm) }, cardNetwork, object);
    return true;
  }
  // Null: a person has said that nothing was bought.
  if (booked === null || isSame(booked)) {
    tally(found, 'matched');
    return true;
  }
  const { authorization, transactions } = booked;
  const ids = new Map<string | null, string>();
  if (authorization !== null) ids.set(paymentId, authorization.id);
  for (const { network_transaction_id: issuerId, id } of transactions) ids.set(issuerId, id);
  logger.warn({ paymentId, ids: [...ids.values()] }, 'corrected a payment to what the card network has');
  for (const finding of findings)
    tallyCorrected(found, { ...finding, id: ids.get(finding.issuerId) ?? finding.id });
  return true;
}

const book = (look: Look, read: ReadPayment) => bookRead(look, read, async () => {});

/** Nothing that a partner sees is missing here. */
const isSame = ({ postings, events }: BookedPayment): boolean => postings.length === 0 && events.length === 0;

function notCompared(issuerId: string): Finding {
  const detail = "a payment can't be compared: the worker's log says why";
  return { problem: 'different', kind: 'transaction', id: null, issuerId, detail };
}

/**
 * How a payment differs: what of it is not booked here, or else that it holds something else.
 * @param ours what it would become; null if its card is not known, or can't be used
 */
function differencesOf({ paymentId, heldCents }: PaymentSnapshot, ours: BookedPayment | null): Finding[] {
  const about = { kind: 'transaction', id: null, issuerId: paymentId } as const;
  if (ours === null)
    return [
      { ...about, problem: 'missing_here', detail: "the issuer has a payment whose card can't take it" },
    ];
  const { transactions, events, authorization } = ours;
  const missing = transactions.map(({ network_transaction_id: issuerId, type, amount_cents: cents }) => ({
    ...about,
    issuerId,
    problem: 'missing_here' as const,
    detail: `the issuer has a ${type} of ${cents} cents that it never told us`,
  }));
  if (events.some(({ type }) => type === 'card.authorization.created')) {
    const detail = `the issuer has an authorization of ${authorization?.amount_cents} cents that it never told us`;
    missing.unshift({ ...about, problem: 'missing_here', detail });
  }
  if (missing.length > 0) return missing;
  const detail = `the issuer holds ${heldCents ?? 'an unknown number of'} cents of this payment, and we do not hold the same`;
  return [{ ...about, problem: 'different', id: authorization?.id ?? null, detail }];
}
