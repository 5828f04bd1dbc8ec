import { sql } from 'kysely';
import { type CardBalance, type CardRow, presentCard } from '../cards/resource.ts';
import type { AccountClock } from '../domain/account-clock.ts';
import { ApiError } from '../domain/api-error.ts';
import type { AuthorizationMessageType, DeclineReason } from '../domain/authorization.ts';
import { MAX_AMOUNT_CENTS } from '../domain/money.ts';
import { type PostingOutcome, statementWithPostings } from '../ledger/apply-posting.ts';
import { LedgerRejected } from '../ledger/ledger-error.ts';
import type { Posting } from '../ledger/posting.ts';
import { newId } from '../platform/crypto/new-id.ts';
import { AUTHORIZATION_COLUMNS, TRANSACTION_COLUMNS } from '../platform/db/columns.ts';
import type { Transactor } from '../platform/db/sql.ts';
import { insertEvents, newEvent } from '../requests/event.ts';
import { type AuthorizationRow, presentAuthorization } from './authorization-resource.ts';
import { presentTransaction, type TransactionRow } from './transaction-resource.ts';

/** What a request, a clearing, a reversal or an expiry changes, as it will be written. */
export interface AuthorizationChange {
  card: CardRow;
  /** The card's after the change. */
  balance: CardBalance;
  /** The account's, which the transaction holds. */
  clock: AccountClock;
  /** Null for a clearing without an authorization. */
  authorization: AuthorizationRow | null;
  /** A decline or a clearing. */
  transaction: TransactionRow | null;
  /** What moves in the ledger, in this order; none if nothing does. */
  postings: Posting[];
  /** In the order of the list. */
  events: readonly ChangeEvent[];
}

/** A change of an authorization. */
export type ChangedAuthorization = AuthorizationChange & { authorization: AuthorizationRow };

type ChangeEvent = 'card.authorization.created' | 'card.authorization.updated' | 'card.transaction.created';

/** What a message of the network says, and what became of it: a row of `card_authorization_message`. */
export interface NewMessage {
  message_id: string;
  type: AuthorizationMessageType;
  network_authorization_id: string | null;
  amount_cents: number | null;
  is_final: boolean | null;
  authorization_id: string | null;
  transaction_id: string | null;
  decline_reason: DeclineReason | null;
}

/**
 * Writes a change: its rows, its events, its money, and the network's message, in one statement of the
 * caller's transaction, which holds the card's lock.
 * @param message null if it was written before
 * @throws ApiError `validation_failed` if a balance would leave the safe integers
 */
export async function writeChange(
  tx: Transactor,
  change: AuthorizationChange,
  message: NewMessage | null,
): Promise<void> {
  const { card, postings } = change;
  const about = { partner_id: card.partner_id, mode: card.mode, card_id: card.id };
  const messages = message === null ? [] : [{ ...message, ...about }];
  const rows = { ...changedRows([change]), messages: JSON.stringify(messages) };
  const { outcomes } = await writeRows(tx, postings, rows);
  requireApplied(outcomes);
}

/** Writes changes that nobody asked for, of any number of cards, whose locks the transaction holds. */
export async function writeChanges(tx: Transactor, changes: readonly AuthorizationChange[]): Promise<void> {
  const postings = changes.flatMap((change) => change.postings);
  const { outcomes } = await writeRows(tx, postings, { ...changedRows(changes), messages: '[]' });
  requireApplied(outcomes);
}

/** @throws if a posting was not applied: roll back */
function requireApplied(outcomes: readonly PostingOutcome[]): void {
  for (const outcome of outcomes) {
    if (outcome instanceof LedgerRejected && outcome.reason === 'balance_out_of_range') throw outOfRange();
    if (outcome instanceof Error) throw outcome;
    // The card's lock is held, and what the prepaid balance pays may overdraw it, so there was enough.
    if (outcome.outcome !== 'applied') throw new Error(`a change of an authorization is ${outcome.outcome}`);
    // A debit that may overdraw leaves room for what is held, so that posting a hold is never refused.
    if (outcome.prepaid !== null && outcome.prepaid.availableCents < -MAX_AMOUNT_CENTS) throw outOfRange();
  }
}

function changedRows(changes: readonly AuthorizationChange[]): Omit<ChangedRows, 'messages'> {
  const authorizations = changes.map(({ authorization }) => authorization);
  const transactions = changes.map(({ transaction }) => transaction);
  return {
    authorizations: JSON.stringify(authorizations.filter((row) => row !== null)),
    transactions: JSON.stringify(transactions.filter((row) => row !== null)),
    events: JSON.stringify(changes.flatMap(toEvents)),
  };
}

function outOfRange(): ApiError {
  return ApiError.ofField(
    'amount',
    `amount would take the balance more than ${MAX_AMOUNT_CENTS} cents above or below zero`,
  );
}

/** Each event shows the card and the authorization as they are right after the change. */
function toEvents({ card, balance, clock, authorization, transaction, events }: AuthorizationChange) {
  const { partner_id, mode, id: cardId } = card;
  const ids = events.map(() => newId('evt')).sort();
  return events.map((type, index) => {
    const about =
      type === 'card.transaction.created'
        ? { transaction: transaction && presentTransaction(transaction) }
        : { authorization: authorization && presentAuthorization(authorization) };
    const data = { ...about, card: presentCard(card, balance) };
    return { ...newEvent({ type, mode, cardId, data, clock }, ids[index]), partner_id };
  });
}

interface ChangedRows {
  authorizations: string;
  transactions: string;
  messages: string;
  events: string;
}

const joinColumns = (columns: readonly string[]) => sql.join(columns.map((column) => sql.ref(column)));
const MESSAGE_COLUMNS = joinColumns([
  'mode',
  'message_id',
  'partner_id',
  'card_id',
  'type',
  'network_authorization_id',
  'amount_cents',
  'is_final',
  'authorization_id',
  'transaction_id',
  'decline_reason',
]);

// Written out because it writes four tables, any number of rows each, which arrive as one JSON array for
// each.
const insertRows = (rows: ChangedRows) => sql`
  authorized AS (
    INSERT INTO card_authorization (${joinColumns(AUTHORIZATION_COLUMNS)})
    SELECT ${joinColumns(AUTHORIZATION_COLUMNS)}
    FROM json_populate_recordset(NULL::card_authorization, ${rows.authorizations})
    ON CONFLICT (id) DO UPDATE SET status = excluded.status, amount_cents = excluded.amount_cents,
      held_cents = excluded.held_cents, settled_cents = excluded.settled_cents, requests = excluded.requests,
      holds = excluded.holds, decline_reason = excluded.decline_reason, expires_at = excluded.expires_at
  ), settled AS (
    INSERT INTO card_transaction (${joinColumns(TRANSACTION_COLUMNS)})
    SELECT ${joinColumns(TRANSACTION_COLUMNS)}
    FROM json_populate_recordset(NULL::card_transaction, ${rows.transactions})
  ), said AS (
    INSERT INTO card_authorization_message (${MESSAGE_COLUMNS})
    SELECT ${MESSAGE_COLUMNS} FROM json_populate_recordset(NULL::card_authorization_message, ${rows.messages})
  ), notified AS (
    ${insertEvents(rows.events)}
  )`;

// The rows are of the account whose card is locked, which they name.
const writeRows = statementWithPostings(
  (_, rows: ChangedRows, ledger) => sql`
    WITH ${insertRows(rows)}
    SELECT ${ledger.answer} FROM (SELECT) one LEFT JOIN ${ledger.call} ON true`,
  { acrossTenants: 'id' },
);
