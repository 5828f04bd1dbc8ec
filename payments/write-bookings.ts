import { sql } from 'kysely';
import { presentCard } from '../cards/resource.ts';
import { ApiError } from '../domain/api-error.ts';
import { MAX_AMOUNT_CENTS } from '../domain/money.ts';
import { type PostingOutcome, statementWithPostings } from '../ledger/apply-posting.ts';
import { LedgerRejected } from '../ledger/ledger-error.ts';
import { newId } from '../platform/crypto/new-id.ts';
import { AUTHORIZATION_COLUMNS, PAYMENT_COLUMNS, TRANSACTION_COLUMNS } from '../platform/db/columns.ts';
import type { Row } from '../platform/db/entities.ts';
import type { Transactor } from '../platform/db/sql.ts';
import type { KeyedRequest } from '../requests/claim.ts';
import type { OpenCommand } from '../requests/command-context.ts';
import { insertEvents, newEvent } from '../requests/event.ts';
import {
  type ClaimWithResponse,
  claimWithResponse,
  insertClaimWithResponse,
  type KeyedResponse,
  requireStored,
} from '../requests/respond-once.ts';
import type { StoredResponse } from '../requests/response.ts';
import { presentAuthorization } from './authorization-resource.ts';
import type { BookedPayment } from './booking-rows.ts';
import { presentTransaction } from './transaction-resource.ts';

/**
 * Writes bookings of any number of cards, whose locks the transaction holds: rows, events and money, in one
 * statement, and one more for each time that a payment is booked again.
 * @param messages what of the simulated network they answer
 * @throws ApiError `validation_failed` if a balance would leave the safe integers
 */
export async function writeBookings(
  tx: Transactor,
  booked: readonly BookedPayment[],
  messages: readonly AnsweredMessage[] = [],
): Promise<void> {
  if (booked.length === 0 && messages.length === 0) return;
  for (const [index, together] of eachPaymentOnce(booked).entries()) {
    const { outcomes } = await writeRows(
      tx,
      together.flatMap(({ postings }) => postings),
      { ...toJson(together), messages: JSON.stringify(index === 0 ? messages : []) },
    );
    requireApplied(outcomes);
  }
}

/** A statement can write a row only once, so a payment that is booked again begins the next one. */
function eachPaymentOnce(booked: readonly BookedPayment[]): BookedPayment[][] {
  let together: BookedPayment[] = [];
  let payments = new Set<string>();
  const statements = [together];
  for (const one of booked) {
    const payment = one.payment && `${one.card.mode} ${one.payment.payment_id}`;
    if (payment !== null && payments.has(payment)) {
      together = [];
      payments = new Set();
      statements.push(together);
    }
    together.push(one);
    if (payment !== null) payments.add(payment);
  }
  return statements;
}

/** A message of the simulated network, and what became of it. */
export type AnsweredMessage = Row<
  'simulated_message',
  'id' | 'payment_id' | 'network_card_id' | 'said' | 'answer'
>;

/**
 * Writes a booking that a partner asked for, with the response to its request.
 * @throws ApiError as {@link writeBookings}
 */
export async function respondWithBooking(
  { tx, ring }: OpenCommand,
  request: KeyedRequest,
  booked: BookedPayment,
  response: StoredResponse,
): Promise<KeyedResponse> {
  const { postings } = booked;
  if (request.key === null) await writeBookings(tx, [booked]);
  else {
    const claim = { ...claimWithResponse(ring, request, response), messages: '[]' };
    const { outcomes, wrote } = await writeRowsAndClaim(tx, postings, { ...toJson([booked]), ...claim });
    requireApplied(outcomes);
    requireStored(wrote.is_stored);
  }
  return { replayed: false, response };
}

/** @throws if a posting was not applied: roll back */
function requireApplied(outcomes: readonly PostingOutcome[]): void {
  for (const outcome of outcomes) {
    if (outcome instanceof LedgerRejected && outcome.reason === 'balance_out_of_range') throw outOfRange();
    if (outcome instanceof Error) throw outcome;
    // The card's lock is held, and what the prepaid balance pays may overdraw it, so there was enough.
    if (outcome.outcome !== 'applied') throw new Error(`a booking of a payment is ${outcome.outcome}`);
    // A debit that may overdraw leaves room for what is held, so that posting a hold is never refused.
    if (outcome.prepaid !== null && outcome.prepaid.availableCents < -MAX_AMOUNT_CENTS) throw outOfRange();
  }
}

function outOfRange(): ApiError {
  return ApiError.ofField(
    'amount',
    `amount would take the balance more than ${MAX_AMOUNT_CENTS} cents above or below zero`,
  );
}

interface WrittenRows {
  /** Payments whose earlier clearings become their authorization's. */
  linked: string;
  authorizations: string;
  transactions: string;
  payments: string;
  messages: string;
  events: string;
}

function toJson(booked: readonly BookedPayment[]): Omit<WrittenRows, 'messages'> {
  const payments = booked.flatMap(({ payment, card }) =>
    payment === null ? [] : [{ ...payment, mode: card.mode, partner_id: card.partner_id, card_id: card.id }],
  );
  const linked = booked.filter(({ links }) => links);
  return {
    linked: JSON.stringify(
      linked.map(({ authorization, payment, card }) => ({
        authorization_id: authorization?.id,
        network_payment_id: payment?.payment_id,
        card_id: card.id,
      })),
    ),
    authorizations: JSON.stringify(
      booked.map(({ authorization }) => authorization).filter((row) => row !== null),
    ),
    transactions: JSON.stringify(booked.flatMap(({ transactions }) => transactions)),
    payments: JSON.stringify(payments),
    events: JSON.stringify(booked.flatMap(toEvents)),
  };
}

/** Each event shows card and authorization as the booking leaves them. */
function toEvents({ card, balance, clock, authorization, events }: BookedPayment) {
  const { partner_id, mode, id: cardId } = card;
  const ids = events.map(() => newId('evt')).sort();
  return events.map(({ type, transaction }, index) => {
    const about =
      transaction === null
        ? { authorization: authorization && presentAuthorization(authorization) }
        : { transaction: presentTransaction(transaction) };
    const data = { ...about, card: presentCard(card, balance) };
    return { ...newEvent({ type, mode, cardId, data, clock }, ids[index]), partner_id };
  });
}

const joinColumns = (columns: readonly string[]) => sql.join(columns.map((column) => sql.ref(column)));
const AUTHORIZATION = joinColumns(AUTHORIZATION_COLUMNS);
const TRANSACTION = joinColumns(TRANSACTION_COLUMNS);
const PAYMENT = joinColumns([
  'mode',
  'partner_id',
  'card_id',
  'authorization_id',
  'read_after',
  ...PAYMENT_COLUMNS,
]);

// Written out because it writes four tables, any number of rows each, which arrive as one JSON array for
// each. What was cleared before its authorization was known is linked to it, which counts it as settled.
const insertRows = (rows: WrittenRows) => sql`
  authorized AS (
    INSERT INTO card_authorization (${AUTHORIZATION})
    SELECT ${AUTHORIZATION} FROM json_populate_recordset(NULL::card_authorization, ${rows.authorizations})
    ON CONFLICT (id) DO UPDATE SET status = excluded.status, amount_cents = excluded.amount_cents,
      held_cents = excluded.held_cents, settled_cents = excluded.settled_cents, target_cents = excluded.target_cents,
      requests = excluded.requests, holds = excluded.holds, decline_reason = excluded.decline_reason,
      expires_at = excluded.expires_at
  ), moved AS (
    INSERT INTO card_transaction (${TRANSACTION})
    SELECT ${TRANSACTION} FROM json_populate_recordset(NULL::card_transaction, ${rows.transactions})
  ), linked AS (
    UPDATE card_transaction t SET authorization_id = l.authorization_id
    FROM json_populate_recordset(NULL::card_transaction, ${rows.linked}) l
    WHERE t.card_id = l.card_id AND t.network_payment_id = l.network_payment_id AND t.of_authorization
      AND t.authorization_id IS NULL
  ), remembered AS (
    INSERT INTO payment (${PAYMENT})
    SELECT ${PAYMENT} FROM json_populate_recordset(NULL::payment, ${rows.payments})
    ON CONFLICT (mode, payment_id) DO UPDATE SET authorization_id = excluded.authorization_id, said = excluded.said,
      requests = excluded.requests, cleared_cents = excluded.cleared_cents, is_expired = excluded.is_expired,
      read_after = excluded.read_after
  ), said AS (
    INSERT INTO simulated_message (id, payment_id, network_card_id, said, answer)
    SELECT id, payment_id, network_card_id, said, answer
    FROM json_populate_recordset(NULL::simulated_message, ${rows.messages})
    ON CONFLICT (id) DO UPDATE SET answer = excluded.answer
  ), notified AS (${insertEvents(rows.events)})`;

// The rows are of the account whose card is locked, which they name.
const writeRows = statementWithPostings(
  (_, rows: WrittenRows, ledger) => sql<{ is_stored: boolean }>`
    WITH ${insertRows(rows)}
    SELECT ${ledger.answer}, true AS is_stored FROM (SELECT) one LEFT JOIN ${ledger.call} ON true`,
  { acrossTenants: 'id' },
);

const writeRowsAndClaim = statementWithPostings(
  (_, values: WrittenRows & ClaimWithResponse, ledger) => sql<{ is_stored: boolean }>`
    WITH ${insertRows(values)}, answered AS (${insertClaimWithResponse(values)})
    SELECT ${ledger.answer}, EXISTS (SELECT FROM answered) AS is_stored
    FROM (SELECT) one LEFT JOIN ${ledger.call} ON true`,
  { acrossTenants: 'id' },
);
