import { isDeepStrictEqual } from 'node:util';
import { ApiError } from '../domain/api-error.ts';
import type { Tenant } from '../domain/mode.ts';
import { requireUsable } from '../domain/transaction.ts';
import type { Transactor } from '../platform/db/sql.ts';
import type { BookedPayment } from './booking-rows.ts';
import { decideNothing } from './decide-payment.ts';
import type { MessageAnswer } from './tables.ts';
import { type Simulated, type TakenMessage, takeSimulated } from './take-simulated.ts';
import { type AskedTerms, type KnownMessage, lockTerms, type TermsRow } from './terms.ts';
import { leaveTerms, nothingBooked, toTerms, usedOtherwise } from './terms-left.ts';
import { type AnsweredMessage, writeBookings } from './write-bookings.ts';

/** A message of the simulated network about a card of this account and mode. */
export interface MessageToTake extends Tenant {
  cardId: string;
  simulated: Simulated;
  /** What is recorded of it, so that it is taken once; null in test mode, where a request is keyed. */
  recorded: { networkCardId: string; said: object } | null;
}

/** What became of a message. */
export type MessageOutcome =
  | { taken: TakenMessage }
  /** It was taken before, so nothing happened this time. */
  | { answered: MessageAnswer }
  /** It ends an authorization whose request has not arrived. */
  | { waits: 'authorization_unknown' }
  /** `card_not_found`, `invalid_state`, `idempotency_conflict`, `validation_failed`: it does not affect others. */
  | { refused: ApiError };

/**
 * Takes messages of any cards, accounts and modes, in their order, in the caller's transaction, with two
 * statements however many payments they are of: lock and read, write. Each sees what those before it have
 * left. A request for nothing is decided by status, category and country, and leaves no record.
 * @param lockWaitMs how long to wait for a lock before PostgreSQL's error; null for the session's limit
 * @throws ApiError `validation_failed` if a balance would leave the safe integers: take each alone
 */
export async function takeMessages(
  tx: Transactor,
  messages: readonly MessageToTake[],
  lockWaitMs: number | null = null,
): Promise<MessageOutcome[]> {
  const asked = messages.map(toAsked);
  const rows = await lockTerms(tx, asked, lockWaitMs);
  const left = nothingBooked();
  const known = new Map<string, KnownMessage>();
  const written: { booked: BookedPayment[]; messages: AnsweredMessage[] } = { booked: [], messages: [] };

  const take = (
    { simulated, recorded }: MessageToTake,
    about: AskedTerms,
    row: MessageRow,
  ): MessageOutcome => {
    const { id, type, amountCents, merchant } = simulated.message;
    const paymentId = simulated.networkPaymentId;
    if (row.id === null) throw new ApiError('card_not_found');
    const { said, answer } = known.get(id) ?? { said: row.said, answer: row.answer ?? answerByHand(row, id) };
    if (recorded !== null && said !== null && !isDeepStrictEqual(said, recorded.said))
      throw usedOtherwise('message');
    if (answer !== null) return { answered: answer };
    const terms = toTerms(about, row, left);
    if (type === 'authorization' || type === 'increment') {
      if (recorded !== null && (terms.card.network_card_id ?? '') !== recorded.networkCardId)
        throw new ApiError('card_not_found');
      requireUsable(terms.card.status);
      if (amountCents === 0)
        return { answered: { ...NOTHING, declineReason: decideNothing(terms, merchant) } };
    }
    if (type === 'authorization' && terms.authorization !== null) throw usedOtherwise('payment');
    const ends = type === 'reversal' || type === 'expiry';
    if (ends && terms.authorization === null) return { waits: 'authorization_unknown' };
    const taken = takeSimulated(terms, simulated);
    leaveTerms(left, paymentId, taken);
    if (taken.isChanged) written.booked.push(taken);
    if (recorded !== null) {
      const names = { id, payment_id: paymentId ?? '', network_card_id: recorded.networkCardId };
      written.messages.push({ ...names, said: recorded.said, answer: answerOf(taken) });
      known.set(id, { said: recorded.said, answer: answerOf(taken) });
    }
    return { taken };
  };
  const outcomes = messages.map((message, index): MessageOutcome => {
    try {
      return take(message, asked[index] as AskedTerms, rows[index] as MessageRow);
    } catch (error) {
      if (error instanceof ApiError) return { refused: error };
      throw error;
    }
  });
  await writeBookings(tx, written.booked, written.messages);
  return outcomes;
}

type MessageRow = TermsRow & KnownMessage;

const NOTHING: MessageAnswer = { declineReason: null, authorizationId: null, transactionId: null };

/** What a person has made of it; null if nobody has decided it. */
const answerByHand = ({ hand_made, booked }: TermsRow, id: string): MessageAnswer | null =>
  hand_made?.[id] ? { ...NOTHING, transactionId: booked?.[id] ?? null } : null;

const toAsked = ({ partnerId, mode, cardId, simulated }: MessageToTake): AskedTerms => ({
  card_id: cardId,
  partner_id: partnerId,
  mode,
  payment_id: simulated.networkPaymentId,
  message_id: simulated.message.id,
  type: simulated.message.type,
  refunded_id: simulated.refundedTransactionId,
});

/** What the network is answered about a message. */
export const answerOf = ({ reason, authorization, transactions }: TakenMessage): MessageAnswer => ({
  declineReason: reason,
  authorizationId: authorization?.id ?? null,
  transactionId: transactions[0]?.id ?? null,
});
