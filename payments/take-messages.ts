import { isDeepStrictEqual } from 'node:util';
import { sql } from 'kysely';
import { heldClock } from '../accounts/clock.ts';
import type { ControlsColumns } from '../cards/applied-controls.ts';
import type { AccountClock } from '../domain/account-clock.ts';
import { ApiError } from '../domain/api-error.ts';
import type { Tenant } from '../domain/mode.ts';
import { requireUsable } from '../domain/transaction.ts';
import { AUTHORIZATION_COLUMNS, PAYMENT_COLUMNS } from '../platform/db/columns.ts';
import { columnList, type Transactor, writeStatement } from '../platform/db/sql.ts';
import type { BookedPayment } from './booking-rows.ts';
import { decideNothing } from './decide-payment.ts';
import { REFUNDED } from './refunded.ts';
import type { MessageAnswer } from './tables.ts';
import { type Simulated, type SimulatedTerms, type TakenMessage, takeSimulated } from './take-simulated.ts';
import {
  handMadeOf,
  type KnownMessage,
  lockCards,
  lockPaymentTerms,
  type TermsRead,
  usedOtherwise,
} from './terms.ts';
import {
  controlsLeft,
  leaveTerms,
  nothingBooked,
  type RefundRead,
  refundedLeft,
  termsLeft,
} from './terms-left.ts';
import { type AnsweredMessage, writeBookings } from './write-bookings.ts';

/** A message of the simulated network about a card of this account and mode. */
export interface MessageToTake extends Tenant {
  cardId: string;
  simulated: Simulated;
  /** The purchase that a refund in test mode gives money back for, as the partner names it. */
  refundedTransactionId?: string | undefined;
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
 * Takes messages of any cards, accounts and modes, in their order, in the caller's transaction, with three
 * statements however many payments they are of: lock, read, write. Each sees what those before it have left.
 * @param lockWaitMs how long to wait for a lock before PostgreSQL's error; null for the session's limit
 * @throws ApiError `validation_failed` if a balance would leave the safe integers: take each alone
 */
export async function takeMessages(
  tx: Transactor,
  messages: readonly MessageToTake[],
  lockWaitMs: number | null = null,
): Promise<MessageOutcome[]> {
  const testPartnerIds = messages.filter(({ mode }) => mode === 'test').map(({ partnerId }) => partnerId);
  const cards = await lockCards(tx, {
    cardIds: [...new Set(messages.map(({ cardId }) => cardId))],
    testPartnerIds: [...new Set(testPartnerIds)],
    lockWaitMs,
  });
  const byId = new Map(cards.map((card) => [card.id, card]));
  const rows = await readTerms(tx, toAsked(messages));
  const left = nothingBooked();
  const known = new Map<string, KnownMessage>();
  const written: { booked: BookedPayment[]; messages: AnsweredMessage[] } = { booked: [], messages: [] };

  const take = (message: MessageToTake, row: TermsRow): MessageOutcome => {
    const card = byId.get(message.cardId);
    if (card?.partner_id !== message.partnerId || card.mode !== message.mode)
      throw new ApiError('card_not_found');
    const { simulated, recorded, refundedTransactionId } = message;
    const { id, type } = simulated.message;
    const paymentId = simulated.networkPaymentId;
    const refundOf = { cardId: card.id, paymentId: refundedTransactionId === undefined ? paymentId : null };
    const { said, answer } = known.get(id) ?? { ...row, answer: row.answer ?? row.decided };
    if (recorded !== null && said !== null && !isDeepStrictEqual(said, recorded.said))
      throw usedOtherwise('message');
    if (answer !== null) return { answered: answer };
    const before = paymentId === null ? undefined : left.payments.get(`${card.mode} ${paymentId}`);
    const paymentCardId = before?.payment ? before.card.id : row.payment_card_id;
    if (paymentCardId !== null && paymentCardId !== card.id) throw usedOtherwise('payment');
    const terms: SimulatedTerms = {
      ...termsLeft(left, { card, clock: row.clock, paymentId }, row),
      controls: controlsLeft(left, card, row),
      arrivingCents: BigInt(row.arriving),
      refunded: type === 'refund' ? refundedLeft(left, row, refundOf) : null,
    };
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
      return take(message, rows[index] as TermsRow);
    } catch (error) {
      if (error instanceof ApiError) return { refused: error };
      throw error;
    }
  });
  await writeBookings(tx, written.booked, written.messages);
  return outcomes;
}

/** What the network is answered about a message. */
export const answerOf = ({ reason, authorization, transactions }: TakenMessage): MessageAnswer => ({
  declineReason: reason,
  authorizationId: authorization?.id ?? null,
  transactionId: transactions[0]?.id ?? null,
});

/**
 * Decides a request of the simulated network in the caller's transaction, which takes three round trips with
 * BEGIN and COMMIT. A request for nothing is decided by status, category and country, and leaves no record.
 * @throws ApiError `card_not_found`, `invalid_state` if the card was not issued, `idempotency_conflict` if an id
 * was used for something else, `validation_failed` if a fee would be too large
 */
export async function takeRequest(
  tx: Transactor,
  {
    cardId,
    partnerId,
    simulated,
    recorded,
  }: MessageToTake & { recorded: { networkCardId: string; said: object } },
  lockWaitMs: number | null,
): Promise<{ taken: TakenMessage } | { answered: MessageAnswer }> {
  const { id: messageId, type, amountCents, merchant } = simulated.message;
  const paymentId = simulated.networkPaymentId ?? messageId;
  const terms = await lockPaymentTerms(tx, { cardId, paymentId, messageId, lockWaitMs });
  const { networkCardId, said } = recorded;
  if (terms === null || terms.card.partner_id !== partnerId || terms.card.network_card_id !== networkCardId)
    throw new ApiError('card_not_found');
  if (terms.said !== null && !isDeepStrictEqual(terms.said, said)) throw usedOtherwise('message');
  if (terms.answer !== null) return { answered: terms.answer };
  requireUsable(terms.card.status);
  if (amountCents === 0) return { answered: { ...NOTHING, declineReason: decideNothing(terms, merchant) } };
  if (type === 'authorization' && terms.authorization !== null) throw usedOtherwise('payment');
  const taken = takeSimulated(terms, simulated);
  const answer = answerOf(taken);
  const names = { id: messageId, payment_id: paymentId, network_card_id: networkCardId };
  await writeBookings(tx, [taken], [{ ...names, said, answer }]);
  return { taken };
}

const NOTHING = { authorizationId: null, transactionId: null };

interface TermsRow extends ControlsColumns, KnownMessage, TermsRead, RefundRead {
  clock: AccountClock;
  arriving: string;
  payment_card_id: string | null;
  /** What a person has made of it. */
  decided: MessageAnswer | null;
}

const toAsked = (messages: readonly MessageToTake[]): { messages: string; at: string } => ({
  messages: JSON.stringify(
    messages.map(({ cardId, partnerId, mode, simulated, refundedTransactionId }) => ({
      card_id: cardId,
      partner_id: partnerId,
      mode,
      payment_id: simulated.networkPaymentId,
      message_id: simulated.message.id,
      type: simulated.message.type,
      refunded_id: refundedTransactionId,
    })),
  ),
  // Under the locks: it counts in the interval of a spending limit in which it is decided.
  at: new Date().toISOString(),
});

// Each LIMIT makes it look up row by row in an index, whatever the sizes of the tables were when it was
// planned. It writes counters of spending, if a card's limits lack them. In a statement of its own, it sees
// what the last holder of each lock has committed.
const readTerms = writeStatement(
  (_, asked: { messages: string; at: string }) => sql<TermsRow>`
    SELECT coalesce(a.posted, 0) AS card_cents, coalesce(a.held, 0) AS card_held_cents, coalesce(b.posted, 0) AS prepaid_cents,
      p.fee_plan, p.spending_controls AS account_controls, m.said, m.answer, r.refunded, o.purchases,
      CASE WHEN EXISTS (SELECT FROM payment_element e WHERE e.id = s.message_id AND e.approved) THEN jsonb_build_object(
        'declineReason', NULL, 'authorizationId', NULL, 'transactionId', (SELECT t.id FROM card_transaction t
          WHERE t.mode = s.mode AND t.network_transaction_id = s.message_id AND t.type <> 'decline')) END AS decided,
      y.card_id AS payment_card_id, y.payment, to_jsonb(z) AS authorization, y.hand_made,
      CASE WHEN s.type IN ('purchase', 'authorization', 'increment') AND num_nonnulls(k.spending_controls, p.spending_controls) > 0
        THEN count_spending(k.card, p.spending_controls, coalesce(CASE s.type WHEN 'increment' THEN z.created_at END,
          account_time(s.partner_id, s.mode, ${asked.at}))) END AS spending,
      ${heldClock(sql.ref('s.partner_id'), sql.ref('s.mode'))} AS clock,
      CASE WHEN s.type = 'refund' THEN coalesce((SELECT sum(o.amount_cents) FROM card_transfer o
        WHERE o.card_id = s.card_id AND o.direction = 'topup' AND o.status = 'pending'), 0) ELSE 0 END AS arriving
    FROM ROWS FROM (jsonb_to_recordset(${asked.messages}::jsonb) AS (card_id text, partner_id text, mode text,
      payment_id text, message_id text, type text, refunded_id text))
      WITH ORDINALITY s (card_id, partner_id, mode, payment_id, message_id, type, refunded_id, place)
    LEFT JOIN LATERAL (SELECT posted, held FROM ledger.account WHERE card_id = s.card_id LIMIT 1) a ON true
    LEFT JOIN LATERAL (SELECT posted FROM ledger.account
      WHERE id = 'prepaid/' || s.mode || '/' || s.partner_id LIMIT 1) b ON true
    LEFT JOIN LATERAL (SELECT fee_plan, spending_controls FROM partner WHERE id = s.partner_id LIMIT 1) p ON true
    LEFT JOIN LATERAL (SELECT c AS card, c.spending_controls FROM card c WHERE c.id = s.card_id LIMIT 1) k ON true
    LEFT JOIN LATERAL (SELECT said, answer FROM simulated_message WHERE id = s.message_id AND s.mode = 'live' LIMIT 1) m ON true
    LEFT JOIN LATERAL (
      SELECT n.card_id, n.authorization_id, to_jsonb(q) AS payment, ${handMadeOf('n.said')} FROM payment n
      CROSS JOIN LATERAL (SELECT ${columnList('payment', PAYMENT_COLUMNS, 'n')}) q
      WHERE n.mode = s.mode AND n.payment_id = s.payment_id LIMIT 1
    ) y ON true
    LEFT JOIN LATERAL (SELECT ${columnList('card_authorization', AUTHORIZATION_COLUMNS)} FROM card_authorization
      WHERE id = y.authorization_id LIMIT 1) z ON true
    LEFT JOIN LATERAL (
      SELECT min(o.id) AS id, count(*)::int AS purchases FROM card_transaction o
      WHERE s.type = 'refund' AND s.refunded_id IS NULL AND o.card_id = s.card_id AND o.network_payment_id = s.payment_id
        AND o.type = 'purchase'
    ) o ON true
    LEFT JOIN LATERAL (
      SELECT ${REFUNDED} AS refunded FROM card_transaction f
      WHERE s.type = 'refund' AND f.card_id = s.card_id AND f.partner_id = s.partner_id AND f.mode = s.mode
        AND f.id = coalesce(s.refunded_id, CASE o.purchases WHEN 1 THEN o.id END)
      LIMIT 1
    ) r ON true
    ORDER BY s.place`,
  { acrossTenants: 'network' },
);
